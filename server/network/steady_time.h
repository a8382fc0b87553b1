// The reading of a clock that does not jump when the time of day is set.
#ifndef OPMILL_SERVER_NETWORK_STEADY_TIME_H_
#define OPMILL_SERVER_NETWORK_STEADY_TIME_H_

#include <chrono>

#include "absl/time/time.h"

namespace opmill {

inline absl::Duration SteadyNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_STEADY_TIME_H_
