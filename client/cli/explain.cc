// opmill explain: what a server makes of each node of a model, and how long each step takes.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/connection_flags.h"
#include "client/cli/explain_inputs.h"
#include "client/cli/explain_report.h"
#include "client/cli/explain_svg.h"
#include "client/cli/json.h"
#include "client/cli/verbs.h"
#include "client/cli/wanted_model.h"
#include "client/file_writer.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

constexpr uint32_t kMostRuns = 1000;

v1::ModelDesc DescOf(const WantedModel& model, const std::string& version) {
  v1::ModelDesc desc;
  if (!model.sha256.empty()) {
    desc.set_sha256(model.sha256);
  } else {
    desc.set_name(model.info.name());
    desc.set_version(version);
  }
  return desc;
}

absl::StatusOr<v1::ExplainModelResponse> ExplainRuns(Client& client,
                                                     v1::ExplainModelRequest& request,
                                                     uint32_t runs) {
  request.set_run(runs > 0);
  ASSIGN_OR_RETURN(v1::ExplainModelResponse best, client.ExplainModel(request));
  for (uint32_t run = 1; run < runs; ++run) {
    ASSIGN_OR_RETURN(const v1::ExplainModelResponse next, client.ExplainModel(request));
    TakeShorterTimes(next, best);
  }
  return best;
}

// Positions must exist: pictures and tables follow them.
absl::Status CheckPositions(const v1::ExplainModelResponse& explained) {
  bool is_valid = true;
  for (int s = 0; s < explained.steps_size(); ++s) {
    const v1::ExplainedStep& step = explained.steps(s);
    for (const uint32_t input : step.inputs()) is_valid &= input < static_cast<uint32_t>(s);
    for (const uint32_t node : step.nodes()) {
      is_valid &= node < static_cast<uint32_t>(explained.nodes_size());
    }
  }
  return is_valid ? absl::OkStatus()
                  : absl::InternalError("The server's answer names steps that it does not have.");
}

int Explain(const CommandLine& line) {
  FlagReader flags(line);
  const std::string name = line.argument().value_or("");
  const std::string version = line.Get("model_version").value_or("");
  if (name.empty())
    flags.FailPlain("A model is required: its name on the server, or an ONNX file.");
  if (IsModelFile(name) && !version.empty()) {
    flags.Fail("model_version", "It is of models of the server; files have no versions.");
  }
  const uint32_t runs = flags.Number("runs", 5);
  if (runs > kMostRuns) flags.Fail("runs", absl::StrCat(runs, " is above ", kMostRuns, "."));
  v1::ExplainModelRequest request;
  request.set_priority(ReadPriority(flags));
  const std::optional<std::string> svg = line.Get("svg");
  if (!flags.status().ok()) return BadCommandLine(line, flags.status());
  if (svg.has_value()) {
    if (const absl::Status path = FileWriter::CheckPath(*svg); !path.ok()) return Fail(path);
  }
  int exit_code = kDone;
  std::optional<Client> client = ConnectOrExplain(flags, exit_code);
  if (!client) return exit_code;
  const absl::StatusOr<WantedModel> model = FindModel(*client, name, version);
  if (!model.ok()) return Fail(model.status());
  *request.mutable_model() = DescOf(*model, version);
  const absl::Status inputs =
      AddInputs(model->info, line.GetAll("input"), *request.mutable_model());
  if (!inputs.ok()) return BadCommandLine(line, inputs);
  const absl::StatusOr<v1::ExplainModelResponse> explained = ExplainRuns(*client, request, runs);
  if (!explained.ok()) return Fail(explained.status());
  if (const absl::Status valid = CheckPositions(*explained); !valid.ok()) return Fail(valid);
  Print(line.Has("json") ? JsonOf(*explained) + "\n" : ExplainText(*explained));
  if (!svg.has_value()) return kDone;
  const absl::Status written = WriteTextFile(*svg, ExplainSvg(model->info.name(), *explained));
  return written.ok() ? kDone : Fail(written);
}

}  // namespace

const Verb& ExplainVerb() {
  static const Verb* const verb = new Verb{
      .name = "explain",
      .arguments = "MODEL",
      .summary = "shows what became of each node of a model, and how long each step takes",
      .details =
          "MODEL is a model of the server, or an ONNX file. The server runs it with inputs that "
          "it\n"
          "makes up: sizes are needed where the model leaves them open, and elements of inputs on\n"
          "which sizes depend. A step is what the device computes at once, for one node or "
          "several.\n"
          "Its time is the shortest of all runs.\n\n"
          "  opmill explain model.onnx --input x=1,3,320,320 --svg model.svg\n"
          "  opmill explain vad --input input=1,576 --input state=2,1,128 --input sr:=16000\n",
      .flags = WithCommonFlags(
          {{"input",
            "NAME=SIZES",
            "sizes of an input (x=1,3,320,320), or its elements (sr:=16000); once for each",
            {},
            /*repeats=*/true},
           {"model_version", "VERSION", "this version only; default: the newest"},
           {"runs", "NUMBER", "how often it is run (default 5); 0: it is only compiled"},
           {"svg", "FILE", "write a picture of the steps (SVG)"},
           {"priority", "NUMBER", "of your executions that wait, the greatest runs first; 0"}}),
      .run = &Explain};
  return *verb;
}

}  // namespace opmill
