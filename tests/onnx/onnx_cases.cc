// onnx_cases FOLDER...: computes test cases, and compares. Prints a line for each folder and way of
// computing: "NAME reference VERDICT" with the reference operators, "NAME cpu VERDICT" on the cpu
// device after FuseChains, "NAME fold VERDICT" with the inputs as constants. A folder has
// model.onnx and tensors.txt, whose lines are
//   in|out ELEMENT_TYPE SIZES FILE
// with raw bytes in FILE; inputs and outputs are in the order of the model's.
#include <cmath>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/base/errors.h"
#include "kernels/base/rounding.h"
#include "kernels/cpu/device/cpu_device.h"
#include "kernels/onnx/elements.h"
#include "kernels/onnx/evaluate.h"
#include "kernels/onnx/lower_graph.h"
#include "kernels/onnx/read_model.h"
#include "kernels/onnx/specialize.h"
#include "kernels/operators/elementwise/fuse_chains.h"
#include "tests/support/programs.h"

namespace opmill::onnx {
namespace {

std::string ReadFile(const std::string& path) {
  std::stringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

constexpr size_t kPaddingBytes = 4;  // that Compute reads after a tensor

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
  // ONNX rounds to FLOAT16 after every step.
  const double most = type == ElementType::kFloat16 ? 2e-3 : 1e-3;
  for (size_t i = 0; i < *ElementCount(got.type.sizes); ++i) {
    const double a = LoadNumber<double>(type, got.bytes->data(), i);
    const double b = LoadNumber<double>(type, wanted.bytes->data(), i);
    const bool is_equal =
        a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-5 + most * std::abs(b);
    if (!is_equal) return absl::StrCat("wrong element ", i, ": ", a, " for ", b);
  }
  return "";
}

enum class Mode { kReference, kCpu, kFold };

absl::StatusOr<std::vector<std::string>> ComputeOnCpu(const Program& program,
                                                      const std::vector<std::string>& inputs) {
  static const std::unique_ptr<Device> device = CreateCpuDevice();
  std::vector<TensorBytes> bytes;
  for (const std::string& input : inputs) {
    const auto* const data = reinterpret_cast<const std::byte*>(input.data());
    bytes.emplace_back(data, data + RoundUp(input.size() - kPaddingBytes, 4));
  }
  ASSIGN_OR_RETURN(auto compiled, device->Compile(FuseChains(program)));
  ASSIGN_OR_RETURN(const Bindings bindings, BindProgram(*device, program, bytes));
  RETURN_IF_ERROR(device->RunAndWait(std::move(compiled), bindings).status());
  std::vector<std::string> outputs;
  for (const TensorBytes& output : OutputBytes(program, bindings)) {
    outputs.emplace_back(reinterpret_cast<const char*>(output.data()), output.size());
  }
  return outputs;
}

// `inputs` have kPaddingBytes more.
absl::StatusOr<std::vector<std::string>> ComputeOutputs(const LoweredGraph& model,
                                                        std::vector<std::string> inputs,
                                                        Mode mode) {
  if (mode == Mode::kCpu) return ComputeOnCpu(model.program, inputs);
  RETURN_IF_ERROR(Compute(model.program, inputs));
  return std::vector<std::string>(inputs.end() - static_cast<ptrdiff_t>(model.outputs.size()),
                                  inputs.end());
}

absl::StatusOr<std::vector<Tensor>> Run(const Graph& graph, const Case& test, Mode mode) {
  InputBindings bindings;
  if (test.inputs.size() < graph.inputs.size()) return absl::InternalError("too few inputs");
  std::vector<std::string> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string& name = graph.values[graph.inputs[i].value].name;
    const bool is_form = std::ranges::count(FormInputs(graph), name) > 0;
    if (mode == Mode::kFold || is_form) {
      bindings.values[name] = test.inputs[i];
    } else {
      bindings.sizes[name] = test.inputs[i].type.sizes;
      inputs.push_back(*test.inputs[i].bytes);
      inputs.back().resize(inputs.back().size() + kPaddingBytes);
    }
  }
  ASSIGN_OR_RETURN(const Graph specialized, Specialize(graph, bindings));
  std::vector<Tensor> outputs;
  if (mode == Mode::kFold) {
    for (const Output& output : specialized.outputs) {
      const Value& value = specialized.values[output.value];
      if (value.constant == nullptr) return absl::UnimplementedError("not folded");
      outputs.push_back({value.type, value.constant});
    }
    return outputs;
  }
  ASSIGN_OR_RETURN(const LoweredGraph model, LowerGraph(specialized));
  ASSIGN_OR_RETURN(const std::vector<std::string> computed,
                   ComputeOutputs(model, std::move(inputs), mode));
  for (size_t i = 0; i < computed.size(); ++i) {
    const TensorType& type = model.outputs[i];
    outputs.push_back(
        {type, std::make_shared<const std::string>(computed[i], 0, PackedBytes(type))});
  }
  return outputs;
}

std::string Verdict(const std::string& folder, Mode mode) {
  const absl::StatusOr<Graph> graph = ReadModelFile(absl::StrCat(folder, "/model.onnx"));
  if (!graph.ok()) return absl::StrCat("refused ", graph.status().message());
  const Case test = ReadCase(folder);
  const absl::StatusOr<std::vector<Tensor>> outputs = Run(*graph, test, mode);
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
  using opmill::onnx::Mode;
  using opmill::onnx::Verdict;
  for (int i = 1; i < argc; ++i) {
    const std::string folder = argv[i];
    const std::string name = folder.substr(folder.rfind('/') + 1);
    for (const auto& [mode_name, mode] :
         {std::pair("reference", Mode::kReference), {"cpu", Mode::kCpu}, {"fold", Mode::kFold}}) {
      std::cout << name << " " << mode_name << " " << Verdict(folder, mode) << std::endl;
    }
  }
  return 0;
}
