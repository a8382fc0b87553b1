// Runs the same execution repeatedly, many at a time, and measures it.
#ifndef OPMILL_CLIENT_CLI_LOAD_GENERATOR_H_
#define OPMILL_CLIENT_CLI_LOAD_GENERATOR_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/client.h"

namespace opmill {

struct LoadOptions {
  v1::OperatorDesc desc;
  std::vector<InputBytes> inputs;
  ExecutionOptions execution;
  uint32_t concurrency = 1;
  bool in_one_message = false;  // Execute, one thread per call; otherwise one ExecuteStream
  absl::Duration warm_up = absl::ZeroDuration();
  absl::Duration duration = absl::Seconds(1);
};

struct LoadReport {
  uint32_t concurrency = 0;
  absl::Duration first_call;  // before the load; includes compilation if necessary
  absl::Duration measured;
  std::vector<absl::Duration> latencies;  // ascending; without the warm-up
  uint64_t bytes_per_call = 0;            // inputs and outputs
  // Sums of the server's statistics.
  absl::Duration upload;
  absl::Duration queue;
  absl::Duration compute;
  absl::Duration download;
  uint64_t batch_size = 0;
};

// Fails if an execution fails, or if its outputs differ from those of the first one. Stops early,
// with the results so far, when `interrupted` becomes true.
absl::StatusOr<LoadReport> RunLoad(Client& client, const LoadOptions& options,
                                   const std::atomic<bool>& interrupted);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_LOAD_GENERATOR_H_
