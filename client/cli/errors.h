// Prints errors, and defines the exit codes of verbs that fail.
#ifndef OPMILL_CLIENT_CLI_ERRORS_H_
#define OPMILL_CLIENT_CLI_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/cli/command_line.h"

namespace opmill {

void Print(absl::string_view text);

// Makes errors be written as JSON, one object each:
//   {"error":{"code":"INVALID_ARGUMENT","message":"...","field":"--axes","hint":"..."}}
// `field` is the flag or the name of the input that caused the error. It and `hint` may be absent.
void WriteErrorsAsJson();

// Writes the error to stderr, with the hint, if any, on a line of its own. Returns `exit_code`.
int ReportError(const absl::Status& status, absl::string_view hint, ExitCode exit_code);

// Returns kFailed. For a missing or unknown token, the hint says how to set it.
int Fail(const absl::Status& status);
// Return kBadCommandLine. The hint refers to the verb's help.
int BadCommandLine(const Verb& verb, const absl::Status& status);
int BadCommandLine(const CommandLine& line, const absl::Status& status);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_ERRORS_H_
