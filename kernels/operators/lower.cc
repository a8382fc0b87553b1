#include "kernels/operators/lower.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/operator_list.h"

namespace opmill {

#define OPMILL_FAMILY(Name)
#define OPMILL_LOWERED_FAMILY(Name) Program Lower##Name(const OperatorDesc& validated);
#include "kernels/operators/operator_list.inc"
#undef OPMILL_FAMILY

namespace {

using LowerFunction = Program (*)(const OperatorDesc&);
constexpr LowerFunction kLowerFunctions[] = {
#define OPMILL_FAMILY(Name) nullptr,
#define OPMILL_LOWERED_FAMILY(Name) &Lower##Name,
#include "kernels/operators/operator_list.inc"
#undef OPMILL_FAMILY
};

LowerFunction FunctionOf(const OperatorDesc& desc) {
  return kLowerFunctions[static_cast<size_t>(desc.schema->family)];
}

// Appends the nodes that compute `node`.
void AppendLowered(const ProgramNode& node, Program lowered, Program& to) {
  std::vector<ProgramView> values;  // of `lowered`, as views of values of `to`
  auto input = node.inputs.begin();
  auto output = node.outputs.begin();
  for (ProgramValue& value : lowered.values) {
    if (value.kind == ValueKind::kIntermediate) {
      values.emplace_back(static_cast<uint32_t>(to.values.size()));
      to.values.push_back(std::move(value));
    } else {
      values.push_back(value.kind == ValueKind::kInput ? *input++ : ProgramView(*output++));
    }
  }
  for (ProgramNode& part : lowered.nodes) {
    for (ProgramView& view : part.inputs) {
      view = {values[view.value].value, values[view.value].first_element + view.first_element};
    }
    for (uint32_t& value : part.outputs) value = values[value].value;
    part.desc.is_batched = node.desc.is_batched;
    to.nodes.push_back(std::move(part));
  }
}

}  // namespace

bool IsLowered(const OperatorDesc& desc) { return FunctionOf(desc) != nullptr; }

Program Lower(Program program, absl::FunctionRef<bool(const OperatorDesc&)> keeps,
              std::vector<uint32_t>* origins) {
  Program result = {.values = std::move(program.values)};
  for (uint32_t n = 0; n < program.nodes.size(); ++n) {
    ProgramNode& node = program.nodes[n];
    if (!IsLowered(node.desc) || keeps(node.desc)) {
      result.nodes.push_back(std::move(node));
    } else {
      AppendLowered(node, FunctionOf(node.desc)(node.desc), result);
    }
    if (origins != nullptr) origins->resize(result.nodes.size(), n);
  }
  return result;
}

}  // namespace opmill
