#include "tests/onnx/model_arguments.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/onnx/elements.h"

namespace opmill::onnx {

absl::StatusOr<InputBindings> ParseBindings(const Graph& graph, absl::Span<char* const> arguments) {
  InputBindings bindings;
  for (const absl::string_view argument : arguments) {
    const std::pair<std::string, absl::string_view> parts =
        absl::StrSplit(argument, absl::MaxSplits('=', 1));
    const bool is_value = absl::EndsWith(parts.first, ":");
    Sizes numbers;
    for (const absl::string_view text : absl::StrSplit(parts.second, ',', absl::SkipEmpty())) {
      if (absl::SimpleAtoi(text, &numbers.emplace_back())) continue;
      return absl::InvalidArgumentError(absl::StrCat(argument, " is no input."));
    }
    if (!is_value) {
      bindings.sizes[parts.first] = numbers;
      continue;
    }
    const std::string name = parts.first.substr(0, parts.first.size() - 1);
    ElementType type = ElementType::kInt64;
    for (const Input& input : graph.inputs) {
      if (graph.values[input.value].name == name) type = input.element;
    }
    bindings.values[name] = ScalarOf(type, static_cast<double>(numbers.at(0)));
  }
  return bindings;
}

}  // namespace opmill::onnx
