// The executions of one `opmill run`. Each has its own inputs; a few run concurrently over one
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
  absl::Status status;  // an error before it begins; later its result
  ExitCode failure_code = kFailed;
  Computation computation;
  std::vector<OutputTarget> targets;   // for each output
  std::vector<uint32_t> dropped_axes;  // of the outputs
  bool shows_progress = false;         // draws a bar while a large input is sent

  // Set when it has succeeded. Its files have been written.
  std::string text;
  std::string json;  // a JSON object without braces
  std::vector<ResultSink::Npy> npys;
};

// Runs the jobs whose status is OK. Calls `finish` for every job, in order and on this thread, as
// soon as it and all jobs before it have ended. Only a few jobs hold elements at a time.
void RunJobs(Client& client, const ExecutionOptions& options, std::vector<Job>& jobs,
             absl::FunctionRef<void(const Job&)> finish);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_JOBS_H_
