// absl::Duration -> google.protobuf.Duration.
#ifndef OPMILL_SERVER_API_ENCODE_DURATION_H_
#define OPMILL_SERVER_API_ENCODE_DURATION_H_

#include <cstdint>

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"

namespace opmill {

inline void EncodeDuration(absl::Duration from, google::protobuf::Duration& to) {
  absl::Duration rest;
  to.set_seconds(absl::IDivDuration(from, absl::Seconds(1), &rest));
  to.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

}  // namespace opmill

#endif  // OPMILL_SERVER_API_ENCODE_DURATION_H_
