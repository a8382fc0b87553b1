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
    RETURN_IF_ERROR(CheckTensors(index, "inputs", node, node.inputs, node.desc.inputs));
    RETURN_IF_ERROR(CheckTensors(index, "outputs", node, node.outputs, outputs));
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const uint32_t value = node.inputs[i];
      if (IsGiven(values_[value]) || writers_[value].has_value()) continue;
      return Invalid(Path(index, "inputs", i),
                     absl::StrCat(" reads values[", value, "], which no earlier node writes."));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const uint32_t value = node.outputs[i];
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

  absl::Status CheckTensors(size_t index, absl::string_view list, const ProgramNode& node,
                            const std::vector<uint32_t>& bound,
                            const std::vector<TensorDesc>& tensors) const {
    if (bound.size() != tensors.size()) {
      return Invalid(absl::StrCat("nodes[", index, "].", list),
                     absl::StrCat(" names ", bound.size(), " values, but ", FullName(node.desc),
                                  " has ", tensors.size(), " ", list, "."));
    }
    for (size_t i = 0; i < bound.size(); ++i) {
      const std::string path = Path(index, list, i);
      if (bound[i] >= values_.size()) {
        return Invalid(path, absl::StrCat(" (", bound[i], ") is not below the number of values (",
                                          values_.size(), ")."));
      }
      const TensorDesc& value = values_[bound[i]].tensor;
      if (value.data_type == tensors[i].data_type && value.sizes == tensors[i].sizes &&
          EffectiveStrides(value) == EffectiveStrides(tensors[i])) {
        continue;
      }
      return Invalid(path, absl::StrCat(" is ", opmill::ToString(tensors[i]), ", but values[",
                                        bound[i], "] is ", opmill::ToString(value), "."));
    }
    return absl::OkStatus();
  }

  const std::vector<ProgramValue>& values_;
  std::vector<std::optional<size_t>> writers_;  // node of each value
};

}  // namespace

Program ProgramOf(OperatorDesc desc) {
  Program program;
  ProgramNode& node = program.nodes.emplace_back();
  const auto bind = [&](ValueKind kind, const TensorDesc& tensor, std::vector<uint32_t>& bound) {
    bound.push_back(static_cast<uint32_t>(program.values.size()));
    program.values.push_back({.kind = kind, .tensor = tensor});
  };
  for (const TensorDesc& input : desc.inputs) bind(ValueKind::kInput, input, node.inputs);
  for (const TensorDesc& output : OutputsOf(desc)) bind(ValueKind::kOutput, output, node.outputs);
  node.desc = std::move(desc);
  return program;
}

const OperatorDesc* OperatorOf(const Program& program) {
  if (program.nodes.size() != 1) return nullptr;
  const ProgramNode& node = program.nodes[0];
  if (node.inputs.size() + node.outputs.size() != program.values.size()) return nullptr;
  uint32_t next = 0;
  const auto are_next = [&](const std::vector<uint32_t>& bound, ValueKind kind) {
    return std::all_of(bound.begin(), bound.end(), [&](uint32_t value) {
      return value == next++ && program.values[value].kind == kind;
    });
  };
  return are_next(node.inputs, ValueKind::kInput) && are_next(node.outputs, ValueKind::kOutput)
             ? &node.desc
             : nullptr;
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
  std::string text = "program(";
  for (size_t i = 0; i < program.values.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", "v", i, "=", ToString(program.values[i].kind), " ");
    AppendText(program.values[i].tensor, text);
  }
  for (const ProgramNode& node : program.nodes) {
    absl::StrAppend(&text, "; ", names(node.outputs), " = ", ToString(node.desc), " of ",
                    names(node.inputs));
  }
  text.push_back(')');
  return text;
}

}  // namespace opmill
