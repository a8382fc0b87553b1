// opmill run: computes an operator on NumPy files.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/broadcast.h"
#include "client/cli/command_line_operators.h"
#include "client/cli/connection_flags.h"
#include "client/cli/inputs.h"
#include "client/cli/jobs.h"
#include "client/cli/operator_flags.h"
#include "client/cli/output_plan.h"
#include "client/cli/run_model.h"
#include "client/cli/run_report.h"
#include "client/cli/verbs.h"
#include "client/encode_operator.h"
#include "client/names.h"
#include "kernels/base/errors.h"
#include "kernels/base/wrap_words.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

// "--input a.npy --input b.npy"
std::string InputFlags(size_t count) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < count; ++i) {
    parts.push_back(absl::StrCat("--input ", std::string(1, static_cast<char>('a' + i)), ".npy"));
  }
  return absl::StrJoin(parts, " ");
}

// Checks the files, `given` by --input or as `positional` arguments.
void CheckInputCount(const NamedOperator& op, const std::vector<std::string>& positional,
                     const std::vector<std::string>& given, FlagReader& flags) {
  const size_t count = op.schema->inputs.size();
  const size_t least = op.schema->required_inputs();
  const std::string takes =
      least == count ? absl::StrCat(count) : absl::StrCat(least, " to ", count);
  if (count > 1 && !positional.empty()) {
    flags.FailPlain(absl::StrCat(op.name, " takes ", takes,
                                 " inputs, each as a flag: ", InputFlags(count), "."));
  }
  if (positional.empty() && given.empty() && count == 1) {
    flags.FailPlain("An input is required: a .npy or .npz file, or - for standard input.");
  }
  if (!positional.empty() && !given.empty()) {
    flags.Fail("input", absl::StrCat("It cannot be combined with positional files (", positional[0],
                                     "); pass all files as positional arguments."));
  }
  if (!positional.empty() || (given.size() >= least && given.size() <= count)) return;
  flags.FailPlain(absl::StrCat(
      op.name, " takes ", takes, count == 1 ? " input; " : " inputs; ", given.size(),
      given.size() == 1 ? " is given" : " are given",
      count == 1 ? ". Pass several files as positional arguments: opmill run OPERATOR a.npy b.npy."
                 : absl::StrCat(": ", InputFlags(count), ".")));
}

std::vector<std::string> ReadInputWords(const NamedOperator& op, FlagReader& flags) {
  std::vector<std::string> positional = flags.line().arguments();
  positional.erase(positional.begin());
  std::vector<std::string> given = flags.line().GetAll("input");
  CheckInputCount(op, positional, given, flags);
  std::vector<std::string> words = positional.empty() ? std::move(given) : std::move(positional);
  if (std::count(words.begin(), words.end(), kStandardStream) > 1) {
    flags.FailPlain("Standard input (-) is given twice.");
  }
  return words;
}

std::vector<absl::string_view> ReducingOperators() {
  std::vector<absl::string_view> names;
  for (const OperatorSchema* const schema : Operators()) {
    if (Reduces(*schema)) names.push_back(schema->name);
  }
  return names;
}

struct RunFlags {
  std::vector<std::string> inputs;
  OperatorChoice choice;
  ExecutionOptions execution;
  v1::DataType cast = v1::DATA_TYPE_UNSPECIFIED;
  bool drops_axes = false;  // reduced axes, which have size 1
};

RunFlags ReadRunFlags(FlagReader& flags) {
  const CommandLine& line = flags.line();
  RunFlags run;
  const std::string name = line.argument().value_or("");
  const NamedOperator* const op = ReadOperatorName(
      name, flags, name.empty() ? "" : " The inputs of a model are --input NAME=FILE.");
  if (op == nullptr) return run;
  run.inputs = ReadInputWords(*op, flags);
  run.choice = ReadOperatorChoice(*op, flags);
  run.execution.feature_level = ReadFeatureLevel(flags);
  run.execution.priority = ReadPriority(flags);
  run.cast = flags.Named("cast", &ParseDataType, v1::DATA_TYPE_UNSPECIFIED);
  run.drops_axes = Reduces(*op->schema) && !line.Has("keepdims");
  if (line.Get("keepdims") && !Reduces(*op->schema)) {
    flags.Fail("keepdims", absl::StrCat(op->name, " does not take this flag."));
  }
  if (line.Has("indices") && op->schema->outputs.size() == 1) {
    flags.Fail("indices", "Only top_k has indices.");
  }
  if (line.GetAll("output").size() > 1) flags.Fail("output", "It is given twice.");
  if (line.Has("model_version")) flags.Fail("model_version", "It is of models only.");
  RefuseJsonBesideResult(flags);
  return run;
}

// Sets the operator of the job, or the error.
void ChooseFor(const RunFlags& run, Job& job) {
  std::vector<TensorDesc> tensors;
  for (const InputArray& input : job.inputs) {
    job.status.Update(input.status);
    if (input.status.ok() && input.desc.sizes().empty()) {
      job.status.Update(absl::InvalidArgumentError(
          absl::StrCat(input.name, ": The array has no dimensions, but operators require 1 to 8; ",
                       "save it with x.reshape(1).")));
    }
    tensors.push_back(TensorDescOf(input.desc));
  }
  if (!job.status.ok()) return;
  job.status = Broadcast(*run.choice.schema, NamesOf(job.inputs), tensors);
  if (!job.status.ok()) return;
  const absl::StatusOr<OperatorDesc> desc =
      run.choice.For(std::move(tensors), job.inputs.front().name);
  job.status = desc.status();
  if (!desc.ok()) {
    job.failure_code = kBadCommandLine;
    return;
  }
  job.computation = EncodeOperator(*desc);
  if (run.drops_axes) job.dropped_axes = AxesOf(*desc);
}

std::vector<Job> MakeJobs(const RunFlags& run, std::vector<Operands> inputs) {
  std::vector<Job> jobs;
  for (Operands& operands : inputs) {
    Job job = {.inputs = std::move(operands)};
    ChooseFor(run, job);
    job.shows_progress = inputs.size() == 1;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// The inputs of each execution: one array for operators with one input, else all arrays.
absl::StatusOr<std::vector<Operands>> OpenAll(const RunFlags& run) {
  const size_t count = run.choice.schema->inputs.size();
  std::vector<Operands> inputs(count == 1 ? 0 : 1);
  for (const std::string& word : run.inputs) {
    std::vector<InputArray> arrays = OpenInputs(word, run.cast);
    if (count > 1) RETURN_IF_ERROR(CheckIsOne(absl::StrCat("--input: ", word), arrays));
    for (InputArray& array : arrays) {
      if (count == 1) inputs.emplace_back();
      inputs.back().push_back(std::move(array));
    }
  }
  return inputs;
}

int Run(const CommandLine& line) {
  if (NamesModel(line)) return RunModel(line);
  FlagReader flags(line);
  const RunFlags run = ReadRunFlags(flags);
  if (!flags.status().ok()) return BadCommandLine(line, flags.status());

  absl::StatusOr<std::vector<Operands>> inputs = OpenAll(run);
  if (!inputs.ok()) return BadCommandLine(line, inputs.status());
  OutputPlan plan(*inputs);
  std::vector<std::vector<OutputTarget>> targets;
  for (const char* const flag : {"output", "indices"}) {
    absl::StatusOr<std::vector<OutputTarget>> planned = plan.Add(flag, line.Get(flag));
    if (!planned.ok()) return BadCommandLine(line, planned.status());
    targets.push_back(*std::move(planned));
  }
  const absl::Status writable = plan.Prepare();
  if (!writable.ok()) return Fail(writable);

  std::vector<Job> jobs = MakeJobs(run, *std::move(inputs));
  if (jobs.size() == 1 && jobs[0].failure_code == kBadCommandLine) {
    return BadCommandLine(line, jobs[0].status);
  }
  bool any_ready = false;
  for (size_t i = 0; i < jobs.size(); ++i) {
    for (const std::vector<OutputTarget>& planned : targets) jobs[i].targets.push_back(planned[i]);
    any_ready |= jobs[i].status.ok();
  }
  RunReport report(line, jobs.size() > 1);
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
      .arguments = "OPERATOR|MODEL [FILE...]",
      .argument_choices = OperatorNames(),
      .summary = "computes an operator or a model of the server on NumPy files",
      .details = absl::StrCat(
          WrapWords(absl::StrCat("OPERATOR is ", OperatorList(), "."), ""),
          "\n\nFILE is\n\n"
          "  x.npy          format 1.0 to 3.0, in C or Fortran order\n"
          "  x.npz          every array of an archive, stored or deflated\n"
          "  x.npz:NAME     one array of an archive\n"
          "  -              a .npy file from standard input\n\n"
          "Several FILEs are computed independently, over one connection. If one fails, the "
          "others\n"
          "still run; the exit code is the highest of all.\n\n"
          "Operators with several inputs take one --input for each, in the operator's order. "
          "Shapes\n"
          "are broadcast as in NumPy; types must be equal (--cast converts).\n\n"
          "Without --output, a result of up to 1000 elements is printed as NumPy prints it; of a\n"
          "longer one, shape, type, minimum and maximum are printed. --output is\n\n"
          "  y.npy          a file, for one input\n"
          "  out/           a folder; each result is named after its input\n"
          "  out-{}.npy     a file; {} stands for the input's name without .npy\n"
          "  y.npz          an archive of all results, named after their inputs\n"
          "  -              standard output, for one input; nothing else is printed there\n\n"
          "  opmill run argmin  x.npy --axes 0,1\n"
          "  opmill run mean    a.npy b.npy --axis 1 --output out/\n"
          "  opmill run top_k   --input x.npy --k 5 --output v.npy --indices i.npy\n"
          "  opmill run add     --input a.npy --input b.npy --output c.npy\n"
          "  opmill run hardmax x.npz:w --axes 0,2 --cast float32 --output y.npz\n"
          "  cat x.npy | opmill run argmax - --axes 1 --output - >y.npy\n\n"
          "MODEL is a model of the server (`opmill models` lists them), or an ONNX file, which "
          "the\n"
          "server gets and keeps for a while. Its inputs are --input NAME=FILE,\n"
          "all of them; --cast TYPE converts those that the model takes in this type. --output is "
          "a\n"
          "folder, a pattern or an archive, in which each output has its name, or NAME=FILE, once "
          "for\n"
          "each output that is to be written.\n\n"
          "  opmill run scale --input x=x.npy --input offset=o.npy --output out/\n"
          "  opmill run scale --input x=x.npy --input offset=o.npy --output y=y.npy\n"
          "  opmill run model.onnx --input x=x.npy\n"),
      .flags = WithCommonFlags(OperatorFlags(
          {{"input",
            "FILE",
            "an input file; repeat it for operators with several inputs; models: NAME=FILE",
            {},
            true},
           {"cast", "TYPE", "convert the inputs to this type first, for example from float64"},
           {"keepdims", "",
            absl::StrCat(absl::StrJoin(ReducingOperators(), ", "),
                         ": keep reduced axes, with size 1 (default: they are removed)")},
           {"priority", "NUMBER", "of your executions that wait, the greatest runs first; 0"},
           {"output",
            "FILE",
            "where the result is written; for top_k, the values; repeat it for outputs of a model",
            {},
            true},
           {"model_version", "VERSION", "models: this version only; default: the newest"},
           {"indices", "FILE", "top_k: where the indices are written"}})),
      .run = &Run};
  return *verb;
}

}  // namespace opmill
