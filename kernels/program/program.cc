#include "kernels/program/program.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/descriptor/validate.h"

namespace opmill {
namespace {

absl::string_view ToString(ValueKind kind) {
  switch (kind) {
    case ValueKind::kInput:
      return "input";
    case ValueKind::kOutput:
      return "output";
    case ValueKind::kConstant:
      return "constant";
    case ValueKind::kIntermediate:
      break;
  }
  return "intermediate";
}

bool AreAlike(const TensorDesc& a, const TensorDesc& b) {
  return a.data_type == b.data_type && a.sizes == b.sizes &&
         EffectiveStrides(a) == EffectiveStrides(b);
}

// Whether it exists before the first node.
bool IsGiven(const ProgramValue& value) {
  return value.kind == ValueKind::kInput || value.kind == ValueKind::kConstant;
}

absl::Status CheckConstant(const ProgramValue& value, const std::string& path) {
  const std::string field = absl::StrCat(path, ".constant");
  if (value.kind != ValueKind::kConstant) {
    if (value.constant == nullptr) return absl::OkStatus();
    return InvalidField(field, absl::StrCat(field, " is given, but ", path, " is no constant."));
  }
  const uint64_t size = value.constant == nullptr ? 0 : value.constant->size();
  if (size == SpannedBytes(value.tensor)) return absl::OkStatus();
  return InvalidField(field, absl::StrCat(field, " has ", size, " bytes; ", ToString(value.tensor),
                                          " takes ", SpannedBytes(value.tensor), "."));
}

// Checks the bindings of nodes in their order.
class BindingChecker {
 public:
  explicit BindingChecker(const std::vector<ProgramValue>& values)
      : values_(values), writers_(values.size()) {}

  absl::Status CheckNode(size_t index, const ProgramNode& node) {
    const std::vector<TensorDesc> outputs = OutputsOf(node.desc);
    RETURN_IF_ERROR(CheckCount(index, "inputs", node, node.inputs.size(), node.desc.inputs.size()));
    RETURN_IF_ERROR(CheckCount(index, "outputs", node, node.outputs.size(), outputs.size()));
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      RETURN_IF_ERROR(CheckView(Path(index, "inputs", i), node.inputs[i], node.desc.inputs[i]));
      const uint32_t value = node.inputs[i].value;
      if (IsGiven(values_[value]) || writers_[value].has_value()) continue;
      return Invalid(Path(index, "inputs", i),
                     absl::StrCat(" reads values[", value, "], which no earlier node writes."));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const uint32_t value = node.outputs[i];
      RETURN_IF_ERROR(CheckTensor(Path(index, "outputs", i), value, outputs[i]));
      std::optional<size_t>& writer = writers_[value];
      if (IsGiven(values_[value])) {
        const bool is_input = values_[value].kind == ValueKind::kInput;
        return Invalid(Path(index, "outputs", i),
                       absl::StrCat(" writes values[", value, "], which is ",
                                    is_input ? "an input." : "a constant."));
      }
      if (writer.has_value()) {
        return Invalid(
            Path(index, "outputs", i),
            absl::StrCat(" writes values[", value, "], which nodes[", *writer, "] writes."));
      }
      writer = index;
    }
    return absl::OkStatus();
  }

  absl::Status CheckAllWritten() const {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (IsGiven(values_[i]) || writers_[i].has_value()) continue;
      return Invalid(
          absl::StrCat("values[", i, "]"),
          absl::StrCat(" is an ", ToString(values_[i].kind), ", but no node writes it."));
    }
    return absl::OkStatus();
  }

 private:
  static std::string Path(size_t node, absl::string_view list, size_t i) {
    return absl::StrCat("nodes[", node, "].", list, "[", i, "]");
  }
  static absl::Status Invalid(const std::string& path, const std::string& what) {
    return InvalidField(path, absl::StrCat(path, what));
  }

  static absl::Status CheckCount(size_t index, absl::string_view list, const ProgramNode& node,
                                 size_t bound, size_t has) {
    if (bound == has) return absl::OkStatus();
    return Invalid(absl::StrCat("nodes[", index, "].", list),
                   absl::StrCat(" names ", bound, " values, but ", FullName(node.desc), " has ",
                                has, " ", list, "."));
  }

  absl::Status CheckExists(const std::string& path, uint32_t value) const {
    if (value < values_.size()) return absl::OkStatus();
    return Invalid(path, absl::StrCat(" (", value, ") is not below the number of values (",
                                      values_.size(), ")."));
  }

  absl::Status CheckView(const std::string& path, const ProgramView& view,
                         const TensorDesc& tensor) const {
    RETURN_IF_ERROR(CheckExists(path, view.value));
    const TensorDesc& value = values_[view.value].tensor;
    const uint64_t elements = SpannedBytes(value) / ElementBytes(value.data_type);
    const uint64_t end = SpannedBytes(tensor) / ElementBytes(tensor.data_type);
    if (tensor.data_type == value.data_type && view.first_element < elements &&
        end <= elements - view.first_element) {
      return absl::OkStatus();
    }
    return Invalid(
        path, absl::StrCat(" is ", opmill::ToString(tensor), " from element ", view.first_element,
                           " on, but values[", view.value, "] is ", opmill::ToString(value), "."));
  }

  absl::Status CheckTensor(const std::string& path, uint32_t bound,
                           const TensorDesc& tensor) const {
    RETURN_IF_ERROR(CheckExists(path, bound));
    if (AreAlike(values_[bound].tensor, tensor)) return absl::OkStatus();
    return Invalid(path, absl::StrCat(" is ", opmill::ToString(tensor), ", but values[", bound,
                                      "] is ", opmill::ToString(values_[bound].tensor), "."));
  }

  const std::vector<ProgramValue>& values_;
  std::vector<std::optional<size_t>> writers_;  // node of each value
};

}  // namespace

Program ProgramOf(OperatorDesc desc) {
  Program program;
  ProgramNode& node = program.nodes.emplace_back();
  const auto add = [&](ValueKind kind, const TensorDesc& tensor) {
    program.values.push_back({.kind = kind, .tensor = tensor});
    return static_cast<uint32_t>(program.values.size() - 1);
  };
  for (const TensorDesc& input : desc.inputs) {
    node.inputs.emplace_back(add(ValueKind::kInput, input));
  }
  for (const TensorDesc& output : OutputsOf(desc)) {
    node.outputs.push_back(add(ValueKind::kOutput, output));
  }
  node.desc = std::move(desc);
  return program;
}

const OperatorDesc* OperatorOf(const Program& program) {
  if (program.nodes.size() != 1) return nullptr;
  const ProgramNode& node = program.nodes[0];
  if (node.inputs.size() + node.outputs.size() != program.values.size()) return nullptr;
  uint32_t next = 0;
  const auto is_next = [&](uint32_t value, ValueKind kind, const TensorDesc& tensor) {
    return value == next && program.values[next].kind == kind &&
           program.values[next++].tensor == tensor;
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ProgramView& view = node.inputs[i];
    if (view.first_element != 0 || !is_next(view.value, ValueKind::kInput, node.desc.inputs[i])) {
      return nullptr;
    }
  }
  size_t output = 0;
  for (const std::optional<TensorDesc>& tensor : node.desc.outputs) {
    if (tensor.has_value() && !is_next(node.outputs[output++], ValueKind::kOutput, *tensor)) {
      return nullptr;
    }
  }
  return &node.desc;
}

absl::StatusOr<Program> Validate(Program program, FeatureLevel level) {
  for (size_t i = 0; i < program.values.size(); ++i) {
    const std::string path = absl::StrCat("values[", i, "]");
    RETURN_IF_ERROR(CheckTensor(program.values[i].tensor, absl::StrCat(path, ".tensor")));
    RETURN_IF_ERROR(CheckConstant(program.values[i], path));
  }
  BindingChecker bindings(program.values);
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    OperatorDesc& desc = program.nodes[i].desc;
    absl::StatusOr<OperatorDesc> validated = Validate(std::move(desc), level);
    if (!validated.ok()) {
      const absl::Status& why = validated.status();
      return WithField(absl::Status(why.code(), absl::StrCat("nodes[", i, "]: ", why.message())),
                       absl::StrCat("nodes[", i, "].desc.", FieldOf(why).value_or("")));
    }
    desc = *std::move(validated);
    RETURN_IF_ERROR(bindings.CheckNode(i, program.nodes[i]));
  }
  RETURN_IF_ERROR(bindings.CheckAllWritten());
  const auto is_output = [](const ProgramValue& v) { return v.kind == ValueKind::kOutput; };
  if (std::none_of(program.values.begin(), program.values.end(), is_output)) {
    return InvalidField("values", "values has no output.");
  }
  return program;
}

std::vector<uint64_t> RequiredBytes(const Program& program, ValueKind kind) {
  std::vector<uint64_t> bytes;
  for (const ProgramValue& value : program.values) {
    if (value.kind == kind) bytes.push_back(RequiredBytes(value.tensor));
  }
  return bytes;
}

std::string ToString(const Program& program) {
  if (const OperatorDesc* const desc = OperatorOf(program)) return ToString(*desc);
  const auto names = [](const std::vector<uint32_t>& values) {
    return absl::StrCat("v", absl::StrJoin(values, ", v"));
  };
  const auto append_view = [](std::string* out, const ProgramView& view) {
    absl::StrAppend(out, "v", view.value);
    if (view.first_element > 0) absl::StrAppend(out, "+", view.first_element);
  };
  std::string text = "program(";
  for (size_t i = 0; i < program.values.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", "v", i, "=", ToString(program.values[i].kind), " ");
    AppendText(program.values[i].tensor, text);
  }
  for (const ProgramNode& node : program.nodes) {
    absl::StrAppend(&text, "; ", names(node.outputs), " = ", ToString(node.desc), " of ",
                    absl::StrJoin(node.inputs, ", ", append_view));
  }
  text.push_back(')');
  return text;
}

}  // namespace opmill
