// The executions of one `opmill run`: inputs of their own each, some of them at a time over one
// connection.
#ifndef OPMILL_CLIENT_CLI_JOBS_H_
#define OPMILL_CLIENT_CLI_JOBS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/cli/command_line.h"
#include "client/cli/inputs.h"
#include "client/cli/output_plan.h"
#include "client/cli/result_sink.h"
#include "client/client.h"

namespace opmill {

struct Job {
  Operands inputs;
  absl::Status status;  // why it cannot be begun; then how it ended
  ExitCode failure_code = kFailed;
  v1::OperatorDesc desc;
  std::vector<OutputTarget> targets;   // of each output
  std::vector<uint32_t> dropped_axes;  // of the outputs
  bool shows_progress = false;         // draws a bar while a large input is sent

  // When it has ended well; its files are there.
  std::string text;
  std::string json;  // an object without its braces
  std::vector<ResultSink::Npy> npys;
};

// Runs those whose status is good, and calls `finish` for each job in their order, on this thread,
// as soon as it and those before it have ended. A few jobs at most hold elements at a time.
void RunJobs(Client& client, const ExecutionOptions& options, std::vector<Job>& jobs,
             absl::FunctionRef<void(const Job&)> finish);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_JOBS_H_
