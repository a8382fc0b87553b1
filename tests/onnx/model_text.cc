#include "tests/onnx/model_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/onnx/read_model.h"
#include "onnx/model.pb.h"

namespace opmill::onnx {

std::string ModelBytes(absl::string_view graph, int64_t opset) {
  file::ModelProto model;
  const std::string text =
      absl::StrCat("opset_import { version: ", opset, " } graph { ", graph, " }");
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model)) << text;
  return model.SerializeAsString();
}

std::string InputText(absl::string_view name, const Sizes& sizes, int type) {
  std::string dims;
  for (const int64_t size : sizes) absl::StrAppend(&dims, " dim { dim_value: ", size, " }");
  return absl::StrCat(" input { name: '", name, "' type { tensor_type { elem_type: ", type,
                      " shape {", dims, " } } } }");
}

std::string IntegersText(absl::string_view name, const Sizes& integers) {
  return absl::StrCat(" initializer { name: '", name, "' data_type: 7 dims: ", integers.size(),
                      " int64_data: [", absl::StrJoin(integers, ","), "] }");
}

std::string NodeText(absl::string_view op, absl::string_view inputs, absl::string_view outputs,
                     absl::string_view more) {
  std::string text = absl::StrCat(" node { op_type: '", op, "'");
  for (const absl::string_view name : absl::StrSplit(inputs, ',')) {
    absl::StrAppend(&text, " input: '", name, "'");
  }
  for (const absl::string_view name : absl::StrSplit(outputs, ',')) {
    absl::StrAppend(&text, " output: '", name, "'");
  }
  return absl::StrCat(text, more, " }");
}

std::string OutputText(absl::string_view name) {
  return absl::StrCat(" output { name: '", name, "' }");
}
std::string IntText(absl::string_view name, int64_t value) {
  return absl::StrCat(" attribute { name: '", name, "' type: 2 i: ", value, " }");
}
std::string IntsText(absl::string_view name, const Sizes& values) {
  return absl::StrCat(" attribute { name: '", name, "' type: 7 ints: [", absl::StrJoin(values, ","),
                      "] }");
}
std::string FloatText(absl::string_view name, float value) {
  return absl::StrCat(" attribute { name: '", name, "' type: 1 f: ", value, " }");
}

std::string IfText() {
  return InputText("x", {2}) + InputText("c", {}, 9) +
         NodeText("If", "c", "y",
                  " attribute { name: 'then_branch' type: 5 g { " + NodeText("Neg", "x", "a") +
                      OutputText("a") + " } } attribute { name: 'else_branch' type: 5 g { " +
                      NodeText("Abs", "x", "b") + OutputText("b") + " } }") +
         OutputText("y");
}

absl::StatusOr<Graph> Specialized(absl::string_view graph, int64_t opset,
                                  const InputBindings& bindings) {
  ASSIGN_OR_RETURN(const Graph read, ReadModel(ModelBytes(graph, opset)));
  return Specialize(read, bindings);
}

std::string OperatorsOf(const Graph& graph) {
  return absl::StrJoin(graph.nodes, ", ",
                       [](std::string* text, const Node& node) { absl::StrAppend(text, node.op); });
}

}  // namespace opmill::onnx
