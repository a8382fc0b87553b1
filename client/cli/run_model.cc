#include "client/cli/run_model.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command_line_operators.h"
#include "client/cli/connection_flags.h"
#include "client/cli/inputs.h"
#include "client/cli/jobs.h"
#include "client/cli/operator_flags.h"
#include "client/cli/output_plan.h"
#include "client/cli/run_report.h"
#include "client/cli/wanted_model.h"
#include "client/model_call.h"
#include "client/names.h"
#include "client/npy_cast.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/nearest.h"

namespace opmill {
namespace {

struct NamedFile {
  std::string name;
  std::string file;
};

// "x=x.npy"; nullopt without a name.
std::optional<NamedFile> NamedFileIn(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  return NamedFile{word.substr(0, equals), word.substr(equals + 1)};
}

struct ModelFlags {
  std::string name;
  std::string version;
  std::vector<NamedFile> inputs;
  v1::DataType cast = v1::DATA_TYPE_UNSPECIFIED;
  ExecutionOptions execution;
};

ModelFlags ReadModelFlags(FlagReader& flags) {
  const CommandLine& line = flags.line();
  ModelFlags run = {.name = *line.argument(), .version = line.Get("model_version").value_or("")};
  if (line.arguments().size() > 1) {
    flags.FailPlain(absl::StrCat(
        "The files of a model are flags, such as --input x=", line.arguments()[1], "."));
  }
  for (const std::string& word : line.GetAll("input")) {
    std::optional<NamedFile> input = NamedFileIn(word);
    if (input.has_value()) {
      run.inputs.push_back(*std::move(input));
    } else {
      flags.Fail("input", absl::StrCat("\"", word, "\" is not NAME=FILE, as for all models."));
    }
  }
  std::vector<Flag> others = OperatorFlags({{.name = "keepdims"}, {.name = "indices"}});
  for (const Flag& flag : others) {
    if (line.Get(flag.name)) flags.Fail(flag.name, "It is of operators only.");
  }
  if (IsModelFile(run.name) && !run.version.empty()) {
    flags.Fail("model_version", "It is of models of the server; files have no versions.");
  }
  run.cast = flags.Named("cast", &ParseDataType, v1::DATA_TYPE_UNSPECIFIED);
  run.execution.priority = ReadPriority(flags);
  RefuseJsonBesideResult(flags);
  return run;
}

// A BOOL tensor takes arrays of bool, and of uint8 as they are; others take their type, or all if
// --cast names it.
absl::Status CheckType(const v1::ModelInfo& model, const v1::ModelTensor& expected,
                       const NpyDtype& dtype, v1::DataType cast) {
  const std::string type = NameOf(dtype);
  if (type == TypeName(expected)) return absl::OkStatus();
  if (expected.is_bool() ? type == "uint8" : expected.data_type() == cast) return absl::OkStatus();
  const bool has_cast = !expected.is_bool() && CheckCast(dtype, expected.data_type()).ok();
  return absl::InvalidArgumentError(absl::StrCat("The input ", Excerpt(expected.name()), " of ",
                                                 model.name(), " is ", TypeName(expected), ", not ",
                                                 type, has_cast ? "; convert it with --cast " : "",
                                                 has_cast ? TypeName(expected) : "", "."));
}

// The inputs with their elements.
absl::StatusOr<std::vector<NamedInput>> Load(const v1::ModelInfo& model, const ModelFlags& run) {
  std::vector<NamedInput> inputs;
  for (const NamedFile& given : run.inputs) {
    const v1::ModelTensor& expected = *absl::c_find_if(
        model.inputs(), [&](const v1::ModelTensor& input) { return input.name() == given.name; });
    const bool is_cast = expected.is_bool() || expected.data_type() == run.cast;
    std::vector<InputArray> arrays =
        OpenInputs(given.file, is_cast ? expected.data_type() : v1::DATA_TYPE_UNSPECIFIED);
    RETURN_IF_ERROR(CheckIsOne(absl::StrCat("--input: ", given.file), arrays));
    if (arrays.front().dtype.has_value()) {
      RETURN_IF_ERROR(CheckType(model, expected, *arrays.front().dtype, run.cast));
    }
    RETURN_IF_ERROR(arrays.front().status);
    ASSIGN_OR_RETURN(InputBytes bytes, arrays.front().load());
    inputs.push_back({given.name, std::move(arrays.front().desc), std::move(bytes)});
  }
  return inputs;
}

// Each output as what OutputPlan gives a target.
std::vector<Operands> ResultsOf(const v1::ModelInfo& model) {
  std::vector<Operands> results;
  for (const v1::ModelTensor& output : model.outputs()) {
    results.push_back({{.name = output.name(), .stem = output.name()}});
  }
  return results;
}

absl::Status OutputRefusal(absl::string_view sentence) {
  return absl::InvalidArgumentError(absl::StrCat("--output: ", sentence));
}

// The targets of outputs that are given as NAME=FILE; the others are shown.
absl::StatusOr<std::vector<OutputTarget>> NamedTargets(const v1::ModelInfo& model,
                                                       const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const v1::ModelTensor& output : model.outputs()) names.push_back(output.name());
  std::vector<OutputTarget> targets(names.size());
  std::vector<std::string> files;
  for (const std::string& word : words) {
    const std::optional<NamedFile> given = NamedFileIn(word);
    if (!given.has_value()) {
      return OutputRefusal(absl::StrCat("\"", word, "\" is not NAME=FILE, as the others are."));
    }
    const auto found = absl::c_find(names, given->name);
    if (found == names.end()) {
      return OutputRefusal(
          absl::StrCat("\"", Excerpt(given->name), "\" is no output: ", model.name(), " gives ",
                       absl::StrJoin(names, ", "), ".", DidYouMean(given->name, names)));
    }
    OutputTarget& target = targets[static_cast<size_t>(found - names.begin())];
    if (target.kind != OutputTarget::Kind::kScreen || absl::c_linear_search(files, given->file)) {
      return OutputRefusal(absl::StrCat(word, ": the output or the file is given twice."));
    }
    if (given->file.empty() || given->file == kStandardStream ||
        absl::EndsWith(given->file, kArchiveSuffix)) {
      return OutputRefusal(absl::StrCat(word, " does not name a .npy file."));
    }
    files.push_back(given->file);
    target = {OutputTarget::Kind::kFile, given->file};
    RETURN_IF_ERROR(NpyWriter::CheckPath(given->file));
  }
  return targets;
}

absl::StatusOr<std::vector<OutputTarget>> TargetsOf(const v1::ModelInfo& model,
                                                    const CommandLine& line) {
  const std::vector<std::string> words = line.GetAll("output");
  if (words.size() > 1 || (words.size() == 1 && NamedFileIn(words[0]).has_value())) {
    return NamedTargets(model, words);
  }
  const std::vector<Operands> results = ResultsOf(model);
  OutputPlan plan(results);
  ASSIGN_OR_RETURN(std::vector<OutputTarget> targets, plan.Add("output", line.Get("output")));
  RETURN_IF_ERROR(plan.Prepare());
  return targets;
}

// The job, from what the server says of the model.
absl::StatusOr<Job> MakeJob(const WantedModel& model, const ModelFlags& run,
                            std::vector<OutputTarget> targets) {
  ASSIGN_OR_RETURN(std::vector<NamedInput> inputs, Load(model.info, run));
  ASSIGN_OR_RETURN(ModelCall call, DescribeCall(model.info, run.version, std::move(inputs)));
  if (!model.sha256.empty()) {
    call.desc.clear_name();
    call.desc.set_sha256(model.sha256);
  }
  Job job = {.targets = std::move(targets), .shows_progress = true};
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const std::string& name = call.desc.inputs(static_cast<int>(i)).name();
    const auto file = absl::c_find_if(run.inputs, [&](const auto& f) { return f.name == name; });
    job.inputs.push_back(
        {.name = file->file, .stem = name, .load = [bytes = call.inputs[i]] { return bytes; }});
  }
  job.computation = std::move(call.desc);
  return job;
}

}  // namespace

bool NamesModel(const CommandLine& line) {
  if (!line.argument().has_value() || FindOperatorName(*line.argument()) != nullptr) return false;
  const std::vector<std::string> inputs = line.GetAll("input");
  // Without any input it may be a model that takes none.
  return IsModelFile(*line.argument()) || absl::c_any_of(inputs, &NamedFileIn) ||
         (inputs.empty() && line.arguments().size() == 1);
}

int RunModel(const CommandLine& line) {
  FlagReader flags(line);
  const ModelFlags run = ReadModelFlags(flags);
  if (!flags.status().ok()) return BadCommandLine(line, flags.status());
  int exit_code = kDone;
  std::optional<Client> client = ConnectOrExplain(flags, exit_code);
  if (!client) return exit_code;
  const absl::StatusOr<WantedModel> model = FindModel(*client, run.name, run.version);
  if (!model.ok()) return Fail(model.status());
  std::vector<std::string> names;
  for (const NamedFile& input : run.inputs) names.push_back(input.name);
  const absl::Status named = CheckInputNames(model->info, names);
  if (!named.ok()) return BadCommandLine(line, named);
  absl::StatusOr<std::vector<OutputTarget>> targets = TargetsOf(model->info, line);
  if (!targets.ok()) return BadCommandLine(line, targets.status());
  absl::StatusOr<Job> job = MakeJob(*model, run, *std::move(targets));
  if (!job.ok()) return Fail(job.status());
  std::vector<Job> jobs;
  jobs.push_back(*std::move(job));
  RunReport report(line, /*has_many=*/false);
  RunJobs(*client, run.execution, jobs, [&](const Job& ended) { report.Finish(ended); });
  return report.Close();
}

}  // namespace opmill
