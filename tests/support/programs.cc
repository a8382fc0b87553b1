#include "tests/support/programs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/base/errors.h"
#include "kernels/descriptor/attribute_text.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/descriptor/validate.h"

namespace opmill {

OperatorDesc DescOf(const OperatorSchema& schema, std::vector<TensorDesc> inputs,
                    const std::vector<NamedValue>& attributes,
                    std::vector<std::optional<TensorDesc>> outputs) {
  OperatorDesc desc = {
      .schema = &schema, .inputs = std::move(inputs), .outputs = std::move(outputs)};
  desc.outputs.resize(schema.outputs.size());
  for (const AttributeSchema& attribute : schema.attributes) {
    const auto given =
        std::find_if(attributes.begin(), attributes.end(),
                     [&](const NamedValue& each) { return each.name == attribute.name; });
    desc.attributes.push_back(given != attributes.end() ? given->value
                                                        : DefaultOf(attribute).value());
  }
  return desc;
}

OperatorDesc ValidDesc(const OperatorSchema& schema, std::vector<TensorDesc> inputs,
                       const std::vector<NamedValue>& attributes,
                       std::vector<std::optional<TensorDesc>> outputs) {
  return Validate(DescOf(schema, std::move(inputs), attributes, std::move(outputs))).value();
}

absl::StatusOr<std::vector<TensorBytes>> RunOperator(Device& device, const OperatorDesc& desc,
                                                     const TensorBytes& input, FeatureLevel level) {
  ASSIGN_OR_RETURN(const OperatorDesc validated, Validate(desc, level));
  return RunValidated(device, validated, {input});
}

absl::StatusOr<std::vector<TensorBytes>> RunValidated(Device& device, const OperatorDesc& validated,
                                                      const std::vector<TensorBytes>& inputs,
                                                      absl::Duration* executed) {
  ASSIGN_OR_RETURN(auto compiled, device.Compile(validated));
  return RunCompiled(device, std::move(compiled), validated, inputs, executed);
}

absl::StatusOr<std::vector<TensorBytes>> RunCompiled(
    Device& device, std::shared_ptr<const CompiledProgram> compiled, const OperatorDesc& validated,
    const std::vector<TensorBytes>& inputs, absl::Duration* executed) {
  Bindings bindings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSIGN_OR_RETURN(bindings.inputs.emplace_back(),
                     device.Allocate(RequiredBytes(validated.inputs[i]), Residency::kUpload));
    std::memcpy(bindings.inputs[i].bytes().data(), inputs[i].data(),
                bindings.inputs[i].bytes().size());
  }
  for (const TensorDesc& output : OutputsOf(validated)) {
    ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer,
                     device.Allocate(RequiredBytes(output), Residency::kReadback));
    bindings.outputs.push_back(std::move(buffer));
  }
  ASSIGN_OR_RETURN(const RunStatistics statistics,
                   device.RunAndWait(std::move(compiled), bindings));
  if (executed != nullptr) *executed = statistics.executed;
  std::vector<TensorBytes> outputs;
  for (const Range& range : bindings.outputs) {
    outputs.emplace_back(range.bytes().begin(), range.bytes().end());
  }
  return outputs;
}

std::vector<uint32_t> ProgramBuilder::Add(const OperatorDesc& desc,
                                          std::vector<ProgramView> inputs) {
  OperatorDesc validated = Validate(desc).value();
  std::vector<uint32_t> outputs;
  for (const TensorDesc& output : OutputsOf(validated)) {
    outputs.push_back(Value(ValueKind::kIntermediate, output));
  }
  program_.nodes.push_back({std::move(validated), std::move(inputs), outputs});
  return outputs;
}

absl::StatusOr<Bindings> BindProgram(Device& device, const Program& program,
                                     const std::vector<TensorBytes>& inputs) {
  Bindings bindings;
  for (const TensorBytes& input : inputs) {
    ASSIGN_OR_RETURN(bindings.inputs.emplace_back(),
                     device.Allocate(input.size(), Residency::kUpload));
    std::memcpy(bindings.inputs.back().bytes().data(), input.data(), input.size());
  }
  for (const uint64_t size : RequiredBytes(program, ValueKind::kOutput)) {
    ASSIGN_OR_RETURN(bindings.outputs.emplace_back(), device.Allocate(size, Residency::kReadback));
    std::memset(bindings.outputs.back().bytes().data(), 0xA5, size);
  }
  return bindings;
}

std::vector<TensorBytes> OutputBytes(const Program& program, const Bindings& bindings) {
  std::vector<TensorBytes> outputs;
  for (const uint64_t size : RequiredBytes(program, ValueKind::kOutput)) {
    const std::byte* const bytes = bindings.outputs[outputs.size()].bytes().data();
    outputs.emplace_back(bytes, bytes + size);
  }
  return outputs;
}

absl::StatusOr<std::vector<TensorBytes>> RunProgram(Device& device, const Program& program,
                                                    const std::vector<TensorBytes>& inputs) {
  ASSIGN_OR_RETURN(const Program validated, Validate(program));
  ASSIGN_OR_RETURN(auto compiled, device.Compile(validated));
  ASSIGN_OR_RETURN(const Bindings bindings, BindProgram(device, validated, inputs));
  RETURN_IF_ERROR(device.RunAndWait(std::move(compiled), bindings).status());
  return OutputBytes(validated, bindings);
}

absl::StatusOr<std::vector<TensorBytes>> RunNodeByNode(Device& device, const Program& program,
                                                       const std::vector<TensorBytes>& inputs) {
  std::vector<TensorBytes> values(program.values.size());
  auto input = inputs.begin();
  for (size_t i = 0; i < values.size(); ++i) {
    if (program.values[i].kind == ValueKind::kInput) values[i] = *input++;
  }
  for (const ProgramNode& node : program.nodes) {
    std::vector<TensorBytes> read;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto [value, first_element] = node.inputs[i];
      const TensorDesc& tensor = node.desc.inputs[i];
      const uint64_t first = first_element * ElementBytes(tensor.data_type);
      TensorBytes& bytes = read.emplace_back(RequiredBytes(tensor));
      std::memcpy(bytes.data(), values[value].data() + first, SpannedBytes(tensor));
    }
    ASSIGN_OR_RETURN(std::vector<TensorBytes> written,
                     RunProgram(device, ProgramOf(node.desc), read));
    for (size_t i = 0; i < written.size(); ++i) values[node.outputs[i]] = std::move(written[i]);
  }
  std::vector<TensorBytes> outputs;
  for (size_t i = 0; i < values.size(); ++i) {
    if (program.values[i].kind == ValueKind::kOutput) outputs.push_back(std::move(values[i]));
  }
  return outputs;
}

}  // namespace opmill
