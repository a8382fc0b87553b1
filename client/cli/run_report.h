// What `opmill run` prints, and the files that its jobs share.
#ifndef OPMILL_CLIENT_CLI_RUN_REPORT_H_
#define OPMILL_CLIENT_CLI_RUN_REPORT_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/command_line.h"
#include "client/cli/command_line_flags.h"
#include "client/cli/inputs.h"
#include "client/cli/jobs.h"
#include "client/cli/npz_writer.h"
#include "client/cli/result_sink.h"

namespace opmill {

std::vector<std::string> NamesOf(const Operands& inputs);

// Whether a result goes to standard output.
bool TakesStandardOutput(const CommandLine& line);

// Records an error if --json is given too.
void RefuseJsonBesideResult(FlagReader& flags);

// Prints the results of jobs as they end, and writes the files that jobs share.
class RunReport {
 public:
  RunReport(const CommandLine& line, bool has_many)
      : is_json_(line.Has("json")), has_many_(has_many), is_quiet_(TakesStandardOutput(line)) {}

  void Finish(const Job& job);
  // Writes the archives. Returns the exit code.
  int Close();

 private:
  void Fail(const Operands& inputs, const absl::Status& status, ExitCode code);
  absl::Status Write(const ResultSink::Npy& npy);

  const bool is_json_;
  const bool has_many_;
  const bool is_quiet_;  // standard output contains a result
  std::map<std::string, std::unique_ptr<NpzWriter>> archives_;
  int exit_code_ = kDone;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_RUN_REPORT_H_
