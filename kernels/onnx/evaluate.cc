#include "kernels/onnx/evaluate.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "kernels/base/errors.h"
#include "kernels/dims/dims.h"
#include "kernels/operators/operator_reference.h"

namespace opmill::onnx {
namespace {

std::optional<std::vector<Bytes>> RunLowered(const OperatorRow& row, const Node& node,
                                             const Values& values, uint64_t most_view_bytes,
                                             const std::stop_token& abandoned) {
  NodeReader reader(node, values);
  Program program;
  std::vector<View> inputs;
  std::vector<std::string> memory;  // of each value
  for (const ValueId id : node.inputs) {
    View& view = inputs.emplace_back();
    if (id == kNoValue) continue;
    if (PackedBytes(values[id].type) == 0) return std::nullopt;
    view = {static_cast<uint32_t>(memory.size()), 0, DescOf(values[id].type)};
    program.values.push_back({ValueKind::kInput, view.tensor});
    memory.push_back(*values[id].constant);
    memory.back().resize(memory.back().size() + 4);  // RequiredBytes are rounded up
  }
  Lowering lowering(reader, program);
  const std::vector<View> views = row.lower(lowering, inputs);
  if (!reader.ok()) return std::nullopt;
  if (program.nodes.empty()) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (PackedBytes(reader.output(i)) > most_view_bytes) return std::nullopt;
    }
  }
  if (!Compute(program, memory, abandoned).ok()) return std::nullopt;
  std::vector<Bytes> outputs;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    outputs.push_back(std::make_shared<const std::string>(
        CopyView(views[i], memory[views[i].value], ElementBytes(reader.output(i).element))));
  }
  return outputs;
}

}  // namespace

std::string CopyView(const View& view, const std::string& bytes, size_t element_bytes) {
  const Dims<1> dims = DimsOf<1>(view.tensor);
  std::string copy(static_cast<size_t>(ElementCount(view.tensor)) * element_bytes, '\0');
  Walk walk(dims, 0);
  for (size_t to = 0; to < copy.size(); to += element_bytes, walk.Next()) {
    std::memcpy(copy.data() + to, bytes.data() + (view.offset + walk.offset(0)) * element_bytes,
                element_bytes);
  }
  return copy;
}

absl::Status Compute(const Program& program, std::vector<std::string>& memory,
                     const std::stop_token& abandoned) {
  while (memory.size() < program.values.size()) {
    const ProgramValue& value = program.values[memory.size()];
    memory.emplace_back(static_cast<size_t>(RequiredBytes(value.tensor)), '\0');
    if (value.constant != nullptr) {
      std::memcpy(memory.back().data(), value.constant->data(),
                  static_cast<size_t>(value.constant->size()));
    }
  }
  for (const ProgramNode& node : program.nodes) {
    std::vector<absl::Span<const std::byte>> sources;
    std::vector<absl::Span<std::byte>> results;
    for (const ProgramView& view : node.inputs) {
      const std::string& bytes = memory[view.value];
      const size_t offset = static_cast<size_t>(view.first_element) *
                            opmill::ElementBytes(program.values[view.value].tensor.data_type);
      sources.emplace_back(reinterpret_cast<const std::byte*>(bytes.data()) + offset,
                           bytes.size() - offset);
    }
    for (const uint32_t output : node.outputs) {
      std::string& bytes = memory[output];
      results.emplace_back(reinterpret_cast<std::byte*>(bytes.data()), bytes.size());
    }
    RETURN_IF_ERROR(ReferenceRun(node.desc, sources, results, abandoned));
  }
  return absl::OkStatus();
}

std::optional<std::vector<Bytes>> Evaluate(const OperatorRow& row, const Node& node,
                                           const Values& values, uint64_t most_view_bytes,
                                           const std::stop_token& abandoned) {
  if (row.fold == nullptr) {
    if (row.lower == nullptr) return std::nullopt;
    return RunLowered(row, node, values, most_view_bytes, abandoned);
  }
  NodeReader reader(node, values, abandoned);
  std::vector<std::string> outputs;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    outputs.emplace_back(static_cast<size_t>(PackedBytes(reader.output(i))), '\0');
  }
  row.fold(reader, outputs);
  if (!reader.ok() || abandoned.stop_requested()) return std::nullopt;
  std::vector<Bytes> bytes;
  for (std::string& output : outputs) {
    bytes.push_back(std::make_shared<const std::string>(std::move(output)));
  }
  return bytes;
}

}  // namespace opmill::onnx
