// What a verb prints, and how it ends when something went wrong.
#ifndef OPMILL_CLIENT_CLI_ERRORS_H_
#define OPMILL_CLIENT_CLI_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/cli/command_line.h"

namespace opmill {

void Print(absl::string_view text);

// From now on errors are written as JSON, one object each:
//   {"error":{"code":"INVALID_ARGUMENT","message":"...","field":"--axes","hint":"..."}}
// `field` is the flag at fault, or the name of the input; it and the hint may be absent.
void WriteErrorsAsJson();

// Writes the error to stderr, and on a line of its own the hint where there is one; returns
// `exit_code`.
int ReportError(const absl::Status& status, absl::string_view hint, ExitCode exit_code);

// kFailed. A call that was refused for its token gets the remedy as its hint.
int Fail(const absl::Status& status);
// kBadCommandLine, with the verb's help as its hint.
int BadCommandLine(const Verb& verb, const absl::Status& status);
int BadCommandLine(const CommandLine& line, const absl::Status& status);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_ERRORS_H_
