// onnx_cases FOLDER...: computes test cases with the reference operators, and compares. Prints a
// line for each folder: "NAME run VERDICT" with the inputs bound by their sizes, "NAME fold
// VERDICT" with the inputs as constants. A folder has model.onnx and tensors.txt, whose lines are
//   in|out ELEMENT_TYPE SIZES FILE
// with raw bytes in FILE; inputs and outputs are in the order of the model's.
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/base/errors.h"
#include "kernels/onnx/elements.h"
#include "kernels/onnx/evaluate.h"
#include "kernels/onnx/lower_graph.h"
#include "kernels/onnx/read_model.h"
#include "kernels/onnx/specialize.h"

namespace opmill::onnx {
namespace {

std::string ReadFile(const std::string& path) {
  std::stringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

struct Case {
  std::vector<Tensor> inputs, outputs;
};

Case ReadCase(const std::string& folder) {
  Case result;
  std::ifstream lines(absl::StrCat(folder, "/tensors.txt"));
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, ' ');
    int element = 0;
    if (parts.size() != 4 || !absl::SimpleAtoi(parts[1], &element)) continue;
    Tensor tensor{{static_cast<ElementType>(element), {}}, nullptr};
    for (const absl::string_view size : absl::StrSplit(parts[2], ',', absl::SkipEmpty())) {
      if (!absl::SimpleAtoi(size, &tensor.type.sizes.emplace_back())) return {};
    }
    tensor.bytes =
        std::make_shared<const std::string>(ReadFile(absl::StrCat(folder, "/", parts[3])));
    (parts[0] == "in" ? result.inputs : result.outputs).push_back(std::move(tensor));
  }
  return result;
}

std::string Compare(const Tensor& got, const Tensor& wanted) {
  if (got.type != wanted.type) {
    return absl::StrCat("wrong type ", ToString(got.type), " for ", ToString(wanted.type));
  }
  const ElementType type = got.type.element;
  if (!IsFloat(DataTypeOf(type)) && type != ElementType::kDouble) {
    return *got.bytes == *wanted.bytes ? "" : "wrong integers";
  }
  for (size_t i = 0; i < *ElementCount(got.type.sizes); ++i) {
    const double a = LoadNumber<double>(type, got.bytes->data(), i);
    const double b = LoadNumber<double>(type, wanted.bytes->data(), i);
    const bool is_equal =
        a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-5 + 1e-3 * std::abs(b);
    if (!is_equal) return absl::StrCat("wrong element ", i, ": ", a, " for ", b);
  }
  return "";
}

absl::StatusOr<std::vector<Tensor>> Run(const Graph& graph, const Case& test, bool folds) {
  InputBindings bindings;
  if (test.inputs.size() < graph.inputs.size()) return absl::InternalError("too few inputs");
  std::vector<size_t> bound;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string& name = graph.values[graph.inputs[i].value].name;
    const bool is_form = std::ranges::count(FormInputs(graph), name) > 0;
    if (folds || is_form) {
      bindings.values[name] = test.inputs[i];
    } else {
      bindings.sizes[name] = test.inputs[i].type.sizes;
      bound.push_back(i);
    }
  }
  ASSIGN_OR_RETURN(const Graph specialized, Specialize(graph, bindings));
  std::vector<Tensor> outputs;
  if (folds) {
    for (const Output& output : specialized.outputs) {
      const Value& value = specialized.values[output.value];
      if (value.constant == nullptr) return absl::UnimplementedError("not folded");
      outputs.push_back({value.type, value.constant});
    }
    return outputs;
  }
  ASSIGN_OR_RETURN(const ModelProgram model, LowerGraph(specialized));
  std::vector<std::string> memory;
  for (const size_t i : bound) {
    memory.push_back(*test.inputs[i].bytes);
    memory.back().resize(memory.back().size() + 4);
  }
  RETURN_IF_ERROR(Compute(model.program, memory));
  std::map<std::string, Tensor> by_name;
  size_t next = 0;
  for (size_t i = 0; i < model.program.values.size(); ++i) {
    if (model.program.values[i].kind != ValueKind::kOutput) continue;
    const ModelTensor& output = model.outputs[next++];
    by_name[output.name] = {output.type, std::make_shared<const std::string>(
                                             memory[i].substr(0, PackedBytes(output.type)))};
  }
  for (const Output& output : specialized.outputs) outputs.push_back(by_name[output.name]);
  return outputs;
}

std::string Verdict(const std::string& folder, bool folds) {
  const absl::StatusOr<Graph> graph = ReadModelFile(absl::StrCat(folder, "/model.onnx"));
  if (!graph.ok()) return absl::StrCat("refused ", graph.status().message());
  const Case test = ReadCase(folder);
  const absl::StatusOr<std::vector<Tensor>> outputs = Run(*graph, test, folds);
  if (!outputs.ok()) {
    return absl::StrCat(absl::IsUnimplemented(outputs.status()) ? "refused " : "invalid ",
                        outputs.status().message());
  }
  for (size_t i = 0; i < test.outputs.size(); ++i) {
    const std::string wrong = Compare((*outputs)[i], test.outputs[i]);
    if (!wrong.empty()) return absl::StrCat(wrong, " in output ", i);
  }
  return "ok";
}

}  // namespace
}  // namespace opmill::onnx

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string folder = argv[i];
    const std::string name = folder.substr(folder.rfind('/') + 1);
    std::cout << name << " run " << opmill::onnx::Verdict(folder, false) << "\n"
              << name << " fold " << opmill::onnx::Verdict(folder, true) << std::endl;
  }
  return 0;
}
