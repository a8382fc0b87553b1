// Measures repeated, concurrent executions.
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
  bool in_one_message = false;  // Execute, with a thread each; else one ExecuteStream
  absl::Duration warm_up = absl::ZeroDuration();
  absl::Duration duration = absl::Seconds(1);
};

struct LoadReport {
  uint32_t concurrency = 0;
  absl::Duration first_call;  // alone; includes compilation if the operator was not cached
  absl::Duration measured;
  std::vector<absl::Duration> latencies;  // ascending; without the warm-up
  uint64_t bytes_per_call = 0;            // inputs and outputs
  // Sums over the statistics that the server returned.
  absl::Duration upload;
  absl::Duration queue;
  absl::Duration compute;
  absl::Duration download;
  uint64_t batch_size = 0;
};

// Fails if an execution fails, or if its outputs differ from those of the first one. When
// `interrupted` becomes true, stops and returns what was measured so far.
absl::StatusOr<LoadReport> RunLoad(Client& client, const LoadOptions& options,
                                   const std::atomic<bool>& interrupted);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_LOAD_GENERATOR_H_
