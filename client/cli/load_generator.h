// Measures repeated, concurrent executions.
#ifndef OPMILL_CLIENT_CLI_LOAD_GENERATOR_H_
#define OPMILL_CLIENT_CLI_LOAD_GENERATOR_H_

#include <atomic>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/load.h"
#include "client/client.h"

namespace opmill {

struct ExecutionLoad {
  v1::OperatorDesc desc;
  std::vector<InputBytes> inputs;
  ExecutionOptions options;
  LoadPlan plan;
  bool in_one_message = false;  // Execute, with a thread each; else one ExecuteStream
};

// Calls once, and then as planned. Fails if an execution fails, or if its outputs differ from those
// of the first one. When `interrupted` becomes true, stops and returns what was measured so far.
absl::StatusOr<LoadReport> RunLoad(Client& client, const ExecutionLoad& load,
                                   const std::atomic<bool>& interrupted);

// On one ExecuteStream, with these outputs expected.
absl::StatusOr<LoadReport> RunOnStream(Client& client, const ExecutionLoad& load,
                                       const std::vector<OutputTensor>& expected,
                                       const std::atomic<bool>& interrupted);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_LOAD_GENERATOR_H_
