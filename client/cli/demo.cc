// opmill demo: runs the examples of DirectML's reference pages on a server.
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/array_text.h"
#include "client/cli/connection_flags.h"
#include "client/cli/json.h"
#include "client/cli/operator_flags.h"
#include "client/cli/verbs.h"
#include "client/encode_operator.h"
#include "client/error.h"
#include "client/worked_examples.h"
#include "kernels/base/errors.h"
#include "kernels/base/json_text.h"

namespace opmill {
namespace {

TensorDesc OutputDesc(const ExampleOutput& output) {
  return {.data_type = output.is_index ? DataType::kUint32 : DataType::kFloat32,
          .sizes = output.sizes};
}

AttributeValue ValueOf(const WorkedExample& example, const OperatorSchema& schema,
                       const AttributeSchema& attribute) {
  switch (attribute.kind) {
    case AttributeKind::kAxis:
      return example.axes.front();
    case AttributeKind::kAxes:
      return example.axes;
    case AttributeKind::kChoice: {
      const char* const name = attribute.name == "function" ? example.function : example.direction;
      return ParseChoice(schema, attribute, name).value();
    }
    default:
      return example.k;
  }
}

// As on the page, including the outputs.
v1::OperatorDesc DescOf(const WorkedExample& example) {
  const OperatorSchema& schema = *FindOperatorName(example.op)->schema;
  OperatorDesc desc = {.schema = &schema,
                       .inputs = {{.data_type = DataType::kFloat32, .sizes = example.sizes}}};
  for (const ExampleOutput& output : example.outputs) desc.outputs.push_back(OutputDesc(output));
  for (const AttributeSchema& attribute : schema.attributes) {
    desc.attributes.push_back(ValueOf(example, schema, attribute));
  }
  return EncodeOperator(desc);
}

template <typename Element>
std::vector<std::byte> BytesAs(const std::vector<double>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(Element));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const Element element = static_cast<Element>(numbers[i]);
    std::memcpy(&bytes[i * sizeof(Element)], &element, sizeof(Element));
  }
  return bytes;
}

std::vector<std::byte> ExpectedBytes(const ExampleOutput& output) {
  return output.is_index ? BytesAs<uint32_t>(output.elements) : BytesAs<float>(output.elements);
}

std::string Indented(const std::string& text) {
  return absl::StrCat("      ", absl::StrReplaceAll(text, {{"\n", "\n      "}}), "\n");
}

// Empty if the result is that of the page, else the expected and the actual result.
absl::StatusOr<std::string> Difference(Client& client, const WorkedExample& example) {
  ASSIGN_OR_RETURN(const ExecutionResult result,
                   client.Execute(DescOf(example), BytesAs<float>(example.input)));
  std::string difference;
  for (size_t i = 0; i < example.outputs.size(); ++i) {
    const ExampleOutput& output = example.outputs[i];
    const std::vector<std::byte> expected = ExpectedBytes(output);
    if (i < result.outputs.size() && result.outputs[i].bytes == expected) continue;
    const v1::DataType type = output.is_index ? v1::DATA_TYPE_UINT32 : v1::DATA_TYPE_FLOAT32;
    absl::StrAppend(&difference, "    output ", i, " should be\n",
                    Indented(ArrayText(type, output.sizes, expected)), "    and is\n");
    if (i < result.outputs.size() && result.outputs[i].bytes.size() == expected.size()) {
      absl::StrAppend(&difference,
                      Indented(ArrayText(type, output.sizes, result.outputs[i].bytes)));
    } else {
      absl::StrAppend(&difference, "      of a different size\n");
    }
  }
  return difference;
}

int Demo(const CommandLine& line) {
  FlagReader flags(line);
  int exit_code = kDone;
  std::optional<Client> client = ConnectOrExplain(flags, exit_code);
  if (!client) return exit_code;
  const bool json = line.Has("json");
  const absl::StatusOr<v1::GetServerInfoResponse> info = client->GetServerInfo();
  if (!info.ok()) return Fail(info.status());
  if (!json) {
    Print(absl::StrCat("The worked examples of DirectML's reference pages, on ",
                       info->device().adapter(), ":\n"));
  }
  size_t right = 0;
  std::string page;
  std::vector<std::string> verdicts;
  for (const WorkedExample& example : WorkedExamples()) {
    const absl::StatusOr<std::string> difference = Difference(*client, example);
    const bool is_right = difference.ok() && difference->empty();
    right += is_right ? 1 : 0;
    verdicts.push_back(absl::StrCat("{\"page\":", JsonString(example.page),
                                    ",\"title\":", JsonString(example.title),
                                    ",\"call\":", JsonString(DescribeCall(example)),
                                    ",\"ok\":", is_right ? "true}" : "false}"));
    if (json) continue;
    if (page != example.page) Print(absl::StrCat("\n", example.page, "\n"));
    page = example.page;
    Print(absl::StrCat(is_right ? "  ok      " : "  WRONG   ", example.title, "\n          ",
                       DescribeCall(example), "\n"));
    if (!difference.ok()) Print(Indented(Describe(difference.status())));
    if (difference.ok()) Print(*difference);
  }
  const size_t count = WorkedExamples().size();
  if (json) {
    Print(absl::StrCat("{\"right\":", right, ",\"count\":", count, ",\"examples\":[",
                       absl::StrJoin(verdicts, ","), "]}\n"));
  } else {
    Print(absl::StrCat("\n", right, " of ", count, " examples give the results of their page.\n"));
  }
  return right == count ? kDone : kFailed;
}

}  // namespace

const Verb& DemoVerb() {
  static const Verb* const verb =
      new Verb{.name = "demo",
               .summary = "runs the examples of DirectML's reference pages and checks the results",
               .details = "Exit code 1 if a result is not the one of the page.\n",
               .flags = WithCommonFlags({}),
               .run = &Demo};
  return *verb;
}

}  // namespace opmill
