// opmill run: one operator on NumPy files.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/common.h"
#include "client/cli/inputs.h"
#include "client/cli/interrupt.h"
#include "client/cli/jobs.h"
#include "client/cli/npz_writer.h"
#include "client/cli/operator_flags.h"
#include "client/cli/output_plan.h"
#include "client/cli/refusal.h"
#include "client/cli/verbs.h"
#include "client/error.h"
#include "client/file_writer.h"
#include "client/names.h"
#include "kernels/base/json_text.h"
#include "kernels/base/process.h"

namespace opmill {
namespace {

// The arguments behind the operator, or --input.
std::vector<std::string> ReadInputWords(FlagReader& flags) {
  std::vector<std::string> words = flags.line().arguments();
  if (!words.empty()) words.erase(words.begin());
  if (words.empty() && !flags.line().Has("input")) {
    flags.FailPlain("An input is needed: a .npy or .npz file, or - for standard input.");
  }
  if (words.empty()) return {flags.line().Get("input").value_or("")};
  if (flags.line().Has("input")) {
    flags.Fail("input", absl::StrCat("It cannot be combined with positional files (", words[0],
                                     "); pass all files as positional arguments."));
  }
  if (std::count(words.begin(), words.end(), kStandardStream) > 1) {
    flags.FailPlain("Standard input (-) is given twice.");
  }
  return words;
}

bool TakesStandardOutput(const CommandLine& line) {
  return line.Get("output") == kStandardStream || line.Get("indices") == kStandardStream;
}

struct RunFlags {
  std::string op;
  std::vector<std::string> inputs;
  OperatorChoice choice;
  ExecutionOptions execution;
  v1::DataType cast = v1::DATA_TYPE_UNSPECIFIED;
  bool keepdims = true;
};

RunFlags ReadRunFlags(FlagReader& flags) {
  const CommandLine& line = flags.line();
  RunFlags run;
  run.op = line.argument().value_or("");
  CheckOperatorName(run.op, flags);
  run.inputs = ReadInputWords(flags);
  run.choice = ReadOperatorChoice(run.op, flags);
  run.execution.feature_level = ReadFeatureLevel(flags);
  run.cast = flags.Named("cast", &ParseDataType, v1::DATA_TYPE_UNSPECIFIED);
  run.keepdims = line.Get("keepdims") != "false";
  if (line.Get("keepdims") && !run.choice.reduces) {
    flags.Fail("keepdims", absl::StrCat(run.op, " does not take it."));
  }
  if (line.Has("indices") && run.op != "top_k") flags.Fail("indices", "Only top_k has it.");
  if (TakesStandardOutput(line) && line.Has("json")) {
    flags.Fail("json", "Standard output carries the result (-); write it to a file to get JSON.");
  }
  return run;
}

std::vector<uint32_t> DroppedAxes(const RunFlags& run, const v1::OperatorDesc& desc) {
  if (run.keepdims) return {};
  const auto axes = desc.has_arg_min()   ? desc.arg_min().axes()
                    : desc.has_arg_max() ? desc.arg_max().axes()
                                         : desc.reduce().axes();
  return {axes.begin(), axes.end()};
}

// Prints jobs as they end, and writes those that share a file with others.
class Report {
 public:
  Report(const CommandLine& line, bool has_many)
      : is_json_(line.Has("json")), has_many_(has_many), is_quiet_(TakesStandardOutput(line)) {}

  void Finish(const Job& job) {
    absl::Status status = job.status;
    for (size_t i = 0; status.ok() && i < job.npys.size(); ++i) status = Write(job.npys[i]);
    if (!status.ok()) return Fail(job.input.name, status, job.failure_code);
    if (is_quiet_) return;
    const std::string& name = job.input.name;
    if (is_json_) {
      const std::string input =
          has_many_ ? absl::StrCat("\"input\":", JsonString(name), ",") : std::string();
      Print(absl::StrCat("{", input, job.json, "}\n"));
    } else {
      Print(absl::StrCat(has_many_ ? absl::StrCat(name, ":\n") : "", job.text));
    }
  }

  // Writes the archives. Answers the exit code.
  int Close() {
    for (const auto& [path, archive] : archives_) {
      const absl::Status status = archive->Commit();
      if (!status.ok()) Fail(path, status, kFailed);
    }
    return exit_code_;
  }

 private:
  void Fail(const std::string& name, const absl::Status& status, ExitCode code) {
    exit_code_ = std::max<int>(exit_code_, code);
    std::fflush(stdout);  // results before it stay before it where both go to one file
    const absl::Status translated = InFlags(status, name);
    if (!has_many_) {
      opmill::Fail(translated);
      return;
    }
    std::string sentence = Describe(translated);
    if (!absl::StrContains(sentence, name)) sentence = absl::StrCat(name, ": ", sentence);
    opmill::Fail(absl::Status(status.code(), sentence));
    if (!is_json_) return;
    Print(
        absl::StrCat("{\"input\":", JsonString(name), ",\"error\":", JsonString(sentence), "}\n"));
  }

  absl::Status Write(const ResultSink::Npy& npy) {
    if (npy.target.kind == OutputTarget::Kind::kStandardOutput) {
      UseBytes(stdout);
      Print({reinterpret_cast<const char*>(npy.bytes.data()), npy.bytes.size()});
      return absl::OkStatus();  // main tells whether stdout took it
    }
    std::unique_ptr<NpzWriter>& archive = archives_[npy.target.path];
    if (archive == nullptr) {
      CleanUpOnSignals(&FileWriter::AbandonAllForExit);
      absl::StatusOr<std::unique_ptr<NpzWriter>> made = NpzWriter::Create(npy.target.path);
      if (!made.ok()) return made.status();
      archive = *std::move(made);
    }
    return archive->Add(npy.target.member, npy.bytes);
  }

  const bool is_json_;
  const bool has_many_;
  const bool is_quiet_;  // standard output is for a result
  std::map<std::string, std::unique_ptr<NpzWriter>> archives_;
  int exit_code_ = kDone;
};

std::vector<Job> MakeJobs(const RunFlags& run, std::vector<InputArray> inputs) {
  std::vector<Job> jobs;
  for (InputArray& input : inputs) {
    Job job;
    job.status = input.status;
    if (job.status.ok()) {
      absl::StatusOr<v1::OperatorDesc> desc = run.choice.For(input.desc, input.name);
      job.status = desc.status();
      if (!desc.ok()) job.failure_code = kBadCommandLine;
      if (desc.ok()) job.desc = *std::move(desc);
    }
    if (job.status.ok()) job.dropped_axes = DroppedAxes(run, job.desc);
    job.shows_progress = inputs.size() == 1;
    job.input = std::move(input);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

int Run(const CommandLine& line) {
  FlagReader flags(line);
  const RunFlags run = ReadRunFlags(flags);
  if (!flags.status().ok()) return BadCommandLine(line, flags.status());

  std::vector<InputArray> inputs;
  for (const std::string& word : run.inputs) {
    for (InputArray& array : OpenInputs(word, run.cast)) inputs.push_back(std::move(array));
  }
  OutputPlan plan(inputs);
  std::vector<std::vector<OutputTarget>> targets;
  for (const char* const flag : {"output", "indices"}) {
    absl::StatusOr<std::vector<OutputTarget>> planned = plan.Add(flag, line.Get(flag));
    if (!planned.ok()) return BadCommandLine(line, planned.status());
    targets.push_back(*std::move(planned));
  }
  const absl::Status writable = plan.Prepare();
  if (!writable.ok()) return Fail(writable);

  std::vector<Job> jobs = MakeJobs(run, std::move(inputs));
  if (jobs.size() == 1 && jobs[0].failure_code == kBadCommandLine) {
    return BadCommandLine(line, jobs[0].status);
  }
  bool any_ready = false;
  for (size_t i = 0; i < jobs.size(); ++i) {
    for (const std::vector<OutputTarget>& planned : targets) jobs[i].targets.push_back(planned[i]);
    any_ready |= jobs[i].status.ok();
  }
  Report report(line, jobs.size() > 1);
  const auto finish = [&](const Job& job) { report.Finish(job); };
  if (any_ready) {
    int exit_code = kDone;
    std::optional<Client> client = ConnectOrExplain(flags, exit_code);
    if (!client) return exit_code;
    RunJobs(*client, run.execution, jobs, finish);
  } else {
    std::for_each(jobs.begin(), jobs.end(), finish);
  }
  return report.Close();
}

}  // namespace

const Verb& RunVerb() {
  static const Verb* const verb = new Verb{
      .name = "run",
      .arguments = "OPERATOR [FILE...]",
      .argument_choices = OperatorNames(),
      .summary = "computes an operator of NumPy files",
      .details =
          "OPERATOR is argmin, argmax, reduce, top_k or hardmax. FILE is\n\n"
          "  x.npy          format 1.0 to 3.0, in C or Fortran order\n"
          "  x.npz          each array of an archive, stored or deflated\n"
          "  x.npz:NAME     one of them\n"
          "  -              a .npy file from standard input\n\n"
          "Several inputs are computed independently, over one connection. If one fails, the "
          "others\n"
          "still run; the exit code is the highest of all.\n\n"
          "Without --output a result of up to 1000 elements is printed as NumPy prints it, and of\n"
          "a longer one shape, type, min and max. --output is\n\n"
          "  y.npy          a file, for one input\n"
          "  out/           a folder: each result gets the name of its input\n"
          "  out-{}.npy     a name in which {} stands for the input's name without .npy\n"
          "  y.npz          an archive of all results, under the names of the inputs\n"
          "  -              standard output, for one input; nothing else is printed there\n\n"
          "  opmill run argmin  x.npy --axes 0,1\n"
          "  opmill run reduce  --function mean a.npy b.npy --axis 1 --keepdims=false --output "
          "out/\n"
          "  opmill run top_k   --input x.npy --axis -1 --k 5 --output v.npy --indices i.npy\n"
          "  opmill run hardmax x.npz:w --axes 0,2 --cast float32 --output y.npz\n"
          "  cat x.npy | opmill run argmax - --axes 1 --output - >y.npy\n",
      .flags = WithCommonFlags(OperatorFlags(
          {{"input",
            "FILE",
            "a single FILE",
            {},
            "Pass several files as positional arguments: opmill run OPERATOR a.npy b.npy."},
           {"cast", "TYPE", "convert the input's elements (of float64, say) to this type first"},
           {"keepdims", "", "argmin, argmax, reduce: keep reduced axes, size 1; =false drops them"},
           {"output", "FILE", "write the result there, as .npy; of top_k the values"},
           {"indices", "FILE", "top_k: write the indices there"}})),
      .run = &Run};
  return *verb;
}

}  // namespace opmill
