// opmill models: lists the models of a server.
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/connection_flags.h"
#include "client/cli/json.h"
#include "client/cli/text_table.h"
#include "client/cli/verbs.h"
#include "client/model_call.h"
#include "kernels/base/excerpt.h"

namespace opmill {
namespace {

std::string TensorsText(const google::protobuf::RepeatedPtrField<v1::ModelTensor>& tensors) {
  return absl::StrJoin(tensors, ", ", [](std::string* out, const v1::ModelTensor& tensor) {
    absl::StrAppend(out, ToText(tensor));
  });
}

std::string Text(const v1::ListModelsResponse& listed) {
  if (listed.models().empty()) return "The server has no models.\n";
  std::vector<std::vector<std::string>> rows = {{"model", "version", "inputs", "outputs"}};
  std::string reasons;
  for (const v1::ModelInfo& model : listed.models()) {
    rows.push_back({Excerpt(model.name()), model.ready() ? model.version() : "not ready",
                    TensorsText(model.inputs()), TensorsText(model.outputs())});
    if (!model.reason().empty()) {
      absl::StrAppend(&reasons, "\n", Excerpt(model.name()), ": ", model.reason(), "\n");
    }
  }
  return absl::StrCat(TextTable(rows, /*align_right=*/false), reasons);
}

int Models(const CommandLine& line) {
  FlagReader flags(line);
  int exit_code = kDone;
  std::optional<Client> client = ConnectOrExplain(flags, exit_code);
  if (!client) return exit_code;
  const absl::StatusOr<v1::ListModelsResponse> listed = client->ListModels();
  if (!listed.ok()) return Fail(listed.status());
  Print(line.Has("json") ? JsonOf(*listed) + "\n" : Text(*listed));
  return kDone;
}

}  // namespace

const Verb& ModelsVerb() {
  static const Verb* const verb = new Verb{
      .name = "models",
      .summary = "lists the models of the server, with their inputs and outputs",
      .details =
          "A size of -1 is any size. If a model is not ready, or its last change is not in\n"
          "effect, the reason follows the table.\n",
      .flags = WithCommonFlags({}),
      .run = &Models};
  return *verb;
}

}  // namespace opmill
