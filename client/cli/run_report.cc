#include "client/cli/run_report.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/error_report.h"
#include "client/cli/interrupt.h"
#include "client/cli/refusal.h"
#include "client/error.h"
#include "client/file_writer.h"
#include "kernels/base/errors.h"
#include "kernels/base/json_text.h"
#include "kernels/base/process_io.h"

namespace opmill {

std::vector<std::string> NamesOf(const Operands& inputs) {
  std::vector<std::string> names;
  for (const InputArray& input : inputs) names.push_back(input.name);
  return names;
}

bool TakesStandardOutput(const CommandLine& line) {
  return line.Get("output") == kStandardStream || line.Get("indices") == kStandardStream;
}

void RefuseJsonBesideResult(FlagReader& flags) {
  if (!TakesStandardOutput(flags.line()) || !flags.line().Has("json")) return;
  flags.Fail("json",
             "Standard output contains the result (-); write the result to a file to get JSON.");
}

void RunReport::Finish(const Job& job) {
  absl::Status status = job.status;
  for (size_t i = 0; status.ok() && i < job.npys.size(); ++i) status = Write(job.npys[i]);
  if (!status.ok()) return Fail(job.inputs, status, job.failure_code);
  if (is_quiet_) return;
  const std::string name = has_many_ ? job.inputs.front().name : std::string();
  if (is_json_) {
    const std::string input =
        has_many_ ? absl::StrCat("\"input\":", JsonString(name), ",") : std::string();
    Print(absl::StrCat("{", input, job.json, "}\n"));
  } else {
    Print(absl::StrCat(has_many_ ? absl::StrCat(name, ":\n") : "", job.text));
  }
}

int RunReport::Close() {
  for (const auto& [path, archive] : archives_) {
    if (archive == nullptr) continue;  // it could not be created, which was reported
    const absl::Status status = archive->Commit();
    if (!status.ok()) Fail({{.name = path}}, status, kFailed);
  }
  return exit_code_;
}

void RunReport::Fail(const Operands& inputs, const absl::Status& status, ExitCode code) {
  exit_code_ = std::max<int>(exit_code_, code);
  std::fflush(stdout);  // keeps the order if both streams go to one file
  const absl::Status translated = InFlags(status, NamesOf(inputs));
  if (!has_many_) {
    opmill::Fail(translated);
    return;
  }
  const std::string& name = inputs.front().name;
  std::string sentence = Describe(translated);
  if (!absl::StrContains(sentence, name)) sentence = absl::StrCat(name, ": ", sentence);
  opmill::Fail(absl::Status(status.code(), sentence));
  if (!is_json_) return;
  Print(absl::StrCat("{\"input\":", JsonString(name), ",\"error\":", JsonString(sentence), "}\n"));
}

absl::Status RunReport::Write(const ResultSink::Npy& npy) {
  if (npy.target.kind == OutputTarget::Kind::kStandardOutput) {
    UseBytes(stdout);
    Print({reinterpret_cast<const char*>(npy.bytes.data()), npy.bytes.size()});
    return absl::OkStatus();  // main checks for errors of stdout
  }
  std::unique_ptr<NpzWriter>& archive = archives_[npy.target.path];
  if (archive == nullptr) {
    CleanUpOnSignals(&FileWriter::AbandonAllForExit);
    ASSIGN_OR_RETURN(archive, NpzWriter::Create(npy.target.path));
  }
  return archive->Add(npy.target.member, npy.bytes);
}

}  // namespace opmill
