// opmill compile: validates an operator and compiles it before its first use.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/connection_flags.h"
#include "client/cli/json.h"
#include "client/cli/operator_flags.h"
#include "client/cli/text_table.h"
#include "client/cli/verbs.h"
#include "client/names.h"
#include "proto/duration.h"

namespace opmill {
namespace {

std::string Text(const v1::CompileOperatorResponse& response, const OperatorSchema& schema) {
  std::vector<std::vector<std::string>> rows = {{"key", response.key()}};
  if (schema.inputs.size() == 1) rows.push_back({"input", BytesText(response.input_bytes())});
  for (size_t i = 0; schema.inputs.size() > 1 && i < schema.inputs.size(); ++i) {
    const int index = static_cast<int>(i);
    if (index >= response.each_input_bytes_size()) break;
    rows.push_back({absl::StrCat("input ", schema.inputs[i].name),
                    BytesText(response.each_input_bytes(index))});
  }
  for (int i = 0; i < response.outputs_size(); ++i) {
    const v1::TensorDesc& output = response.outputs(i);
    rows.push_back(
        {absl::StrCat("output ", i),
         absl::StrCat("(", absl::StrJoin(output.sizes(), ", "), ") ", NameOf(output.data_type()),
                      ", ",
                      BytesText(i < response.output_bytes_size() ? response.output_bytes(i) : 0))});
  }
  rows.push_back({"scratch", BytesText(response.scratch_bytes())});
  rows.push_back({"compiled in", response.was_cached()
                                     ? "- (cached)"
                                     : DurationText(DecodeDuration(response.compile_duration()))});
  return TextTable(rows, /*align_right=*/false);
}

int Compile(const CommandLine& line) {
  FlagReader flags(line);
  const std::string op = line.argument().value_or("");
  ReadOperatorName(op, flags);  // its error comes before those of the tensor
  const TensorDesc input = ReadTensor(flags);
  const v1::OperatorDesc desc = ReadOperator(op, input, flags);
  const std::optional<v1::FeatureLevel> feature_level = ReadFeatureLevel(flags);
  int exit_code = kDone;
  std::optional<Client> client = ConnectOrExplain(flags, exit_code);
  if (!client) return exit_code;
  const absl::StatusOr<v1::CompileOperatorResponse> response = client->Compile(desc, feature_level);
  if (!response.ok()) return Fail(response.status());
  Print(line.Has("json") ? JsonOf(*response) + "\n"
                         : Text(*response, *FindOperatorName(op)->schema));
  return kDone;
}

}  // namespace

const Verb& CompileVerb() {
  static const Verb* const verb = new Verb{
      .name = "compile",
      .arguments = "OPERATOR",
      .argument_choices = OperatorNames(),
      .summary = "validates an operator and compiles it before its first use",
      .details =
          "Prints the operator's key, its outputs, and the device memory that it needs.\n\n"
          "  opmill compile reduce --function sum --dtype float16 --shape 1024,1024 --axes 1\n",
      .flags = WithCommonFlags(OperatorFlags(TensorFlags())),
      .run = &Compile};
  return *verb;
}

}  // namespace opmill
