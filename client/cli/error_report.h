// Output of verbs, and errors with their exit codes.
#ifndef OPMILL_CLIENT_CLI_ERROR_REPORT_H_
#define OPMILL_CLIENT_CLI_ERROR_REPORT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/cli/command_line.h"

namespace opmill {

void Print(absl::string_view text);

// Makes all further errors JSON objects:
//   {"error":{"code":"INVALID_ARGUMENT","message":"...","field":"--axes","hint":"..."}}
// `field` is the invalid flag or the name of the input; it and the hint may be absent.
void WriteErrorsAsJson();

// Writes the error and, on a separate line, the hint to stderr. Returns `exit_code`.
int ReportError(const absl::Status& status, absl::string_view hint, ExitCode exit_code);

// Writes the sentence to stderr; as JSON: {"warning":{"message":"..."}}.
void Warn(absl::string_view sentence);

// Returns kFailed. If the token was refused, adds a hint about tokens.
int Fail(const absl::Status& status);
// Returns kBadCommandLine. The hint refers to the help of the verb.
int BadCommandLine(const Verb& verb, const absl::Status& status);
int BadCommandLine(const CommandLine& line, const absl::Status& status);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_ERROR_REPORT_H_
