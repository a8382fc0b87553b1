// How requests for a model are joined to one run.
#ifndef OPMILL_SERVER_MODELS_BATCH_OPTIONS_H_
#define OPMILL_SERVER_MODELS_BATCH_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace opmill {

// Rows are elements of the first dimension.
struct BatchOptions {
  uint32_t max_rows = 0;                 // of a batch
  std::vector<uint32_t> preferred_rows;  // ascending; at most max_rows
  absl::Duration max_delay;              // an execution waits for others no longer
  friend bool operator==(const BatchOptions&, const BatchOptions&) = default;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_BATCH_OPTIONS_H_
