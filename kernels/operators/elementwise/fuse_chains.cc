#include "kernels/operators/elementwise/fuse_chains.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/elementwise/element_wise_chain.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr size_t kNoNode = ~size_t{0};
// A longer chain saves little more memory traffic, and its values leave the processor's caches.
constexpr size_t kMostSteps = 32;

// A chain, and what it reads.
struct BoundChain {
  Chain chain;
  std::vector<ProgramView> views;
};

bool IsElementWise(const ProgramNode& node) {
  return node.desc.schema->family == OperatorFamily::kElementWise;
}

// nullopt if it computes with words of the elements' size: then its types are not those of the
// values.
std::optional<BoundChain> ChainOfNode(const ProgramNode& node) {
  BoundChain bound = {ChainOf(node.desc), node.inputs};
  for (size_t i = 0; i < bound.views.size(); ++i) {
    if (bound.chain.inputs[i].data_type != node.desc.inputs[i].data_type) return std::nullopt;
  }
  return bound;
}

// The number of an input with this tensor and view, which is added if there is none.
uint32_t InputOf(BoundChain& bound, const TensorDesc& tensor, const ProgramView& view) {
  for (uint32_t i = 0; i < bound.views.size(); ++i) {
    if (bound.views[i] == view && bound.chain.inputs[i] == tensor) return i;
  }
  bound.views.push_back(view);
  bound.chain.inputs.push_back(tensor);
  return static_cast<uint32_t>(bound.views.size() - 1);
}

// Appends the steps of `from`. `operands` are its inputs as operands of `to`, whose inputs are
// complete. Returns the operand that is the last result.
uint32_t AppendSteps(const Chain& from, std::vector<uint32_t> operands, Chain& to) {
  for (ChainStep step : from.steps) {
    for (uint32_t& operand : step.operands) operand = operands[operand];
    operands.push_back(static_cast<uint32_t>(to.inputs.size() + to.steps.size()));
    to.steps.push_back(std::move(step));
  }
  return operands.back();
}

// The consumer with the producer's steps in the place of the value that it reads.
BoundChain Join(const BoundChain& producer, const BoundChain& consumer, uint32_t value) {
  BoundChain joined;
  joined.chain.output = consumer.chain.output;
  std::vector<uint32_t> first;
  for (size_t i = 0; i < producer.views.size(); ++i) {
    first.push_back(InputOf(joined, producer.chain.inputs[i], producer.views[i]));
  }
  std::vector<std::optional<uint32_t>> second;
  for (size_t i = 0; i < consumer.views.size(); ++i) {
    if (consumer.views[i].value == value) {
      second.emplace_back();
    } else {
      second.emplace_back(InputOf(joined, consumer.chain.inputs[i], consumer.views[i]));
    }
  }
  const uint32_t result = AppendSteps(producer.chain, std::move(first), joined.chain);
  std::vector<uint32_t> operands;
  for (const std::optional<uint32_t>& operand : second)
    operands.push_back(operand.value_or(result));
  AppendSteps(consumer.chain, std::move(operands), joined.chain);
  return joined;
}

class Fuser {
 public:
  Fuser(Program program, std::vector<std::vector<uint32_t>>* parts)
      : program_(std::move(program)),
        parts_(parts),
        writers_(program_.values.size(), kNoNode),
        readers_(program_.values.size()) {
    for (size_t n = 0; n < program_.nodes.size(); ++n) {
      for (const uint32_t value : program_.nodes[n].outputs) writers_[value] = n;
      for (const ProgramView& view : program_.nodes[n].inputs) AddReader(view.value, n);
      if (parts_ != nullptr) parts_->push_back({static_cast<uint32_t>(n)});
    }
  }

  Program Run() && {
    for (size_t n = 0; n < program_.nodes.size(); ++n) {
      if (!IsElementWise(program_.nodes[n])) continue;
      while (FuseAnInput(n)) {
      }
    }
    RemoveUnused();
    return std::move(program_);
  }

 private:
  void AddReader(uint32_t value, size_t node) {
    std::vector<size_t>& readers = readers_[value];
    if (readers.empty() || readers.back() != node) readers.push_back(node);
  }

  // Whether the node reads the whole value as it was written.
  bool ReadsAll(const ProgramNode& node, uint32_t value) const {
    const TensorDesc& tensor = program_.values[value].tensor;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].value != value) continue;
      const TensorDesc& read = node.desc.inputs[i];
      if (node.inputs[i].first_element != 0 || read.sizes != tensor.sizes ||
          EffectiveStrides(read) != EffectiveStrides(tensor)) {
        return false;
      }
    }
    return true;
  }

  bool FuseAnInput(size_t n) {
    ProgramNode& node = program_.nodes[n];
    for (const ProgramView& view : node.inputs) {
      const uint32_t value = view.value;
      const size_t writer = writers_[value];
      if (program_.values[value].kind != ValueKind::kIntermediate || readers_[value].size() > 1 ||
          !IsElementWise(program_.nodes[writer]) || !ReadsAll(node, value)) {
        continue;
      }
      const std::optional<BoundChain> producer = ChainOfNode(program_.nodes[writer]);
      const std::optional<BoundChain> consumer = ChainOfNode(node);
      if (!producer.has_value() || !consumer.has_value()) continue;
      if (producer->chain.steps.size() + consumer->chain.steps.size() > kMostSteps) continue;
      BoundChain joined = Join(*producer, *consumer, value);
      absl::StatusOr<OperatorDesc> desc = DescribeChain(joined.chain);
      if (!desc.ok()) continue;  // more inputs or parameters than a chain may have
      for (const ProgramView& read : program_.nodes[writer].inputs) {
        std::erase(readers_[read.value], writer);
        AddReader(read.value, n);
      }
      if (parts_ != nullptr) {
        std::vector<uint32_t>& joined_parts = (*parts_)[writer];
        joined_parts.insert(joined_parts.end(), (*parts_)[n].begin(), (*parts_)[n].end());
        (*parts_)[n] = std::exchange(joined_parts, {});
      }
      program_.nodes[writer] = {};
      writers_[value] = kNoNode;
      node.desc = *std::move(desc);
      node.inputs = std::move(joined.views);
      return true;
    }
    return false;
  }

  // Nodes without an operator, and intermediates that no node writes.
  void RemoveUnused() {
    std::erase_if(program_.nodes,
                  [](const ProgramNode& node) { return node.desc.schema == nullptr; });
    if (parts_ != nullptr) {
      std::erase_if(*parts_, [](const std::vector<uint32_t>& part) { return part.empty(); });
    }
    std::vector<uint32_t> numbers(program_.values.size());
    std::vector<ProgramValue> values;
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<uint32_t>(values.size());
      const bool is_gone =
          program_.values[i].kind == ValueKind::kIntermediate && writers_[i] == kNoNode;
      if (!is_gone) values.push_back(std::move(program_.values[i]));
    }
    program_.values = std::move(values);
    for (ProgramNode& node : program_.nodes) {
      for (ProgramView& view : node.inputs) view.value = numbers[view.value];
      for (uint32_t& value : node.outputs) value = numbers[value];
    }
  }

  Program program_;
  std::vector<std::vector<uint32_t>>* const parts_;  // may be null
  std::vector<size_t> writers_;                      // the node that writes each value
  std::vector<std::vector<size_t>> readers_;         // the nodes that read it
};

}  // namespace

Program FuseChains(Program validated, std::vector<std::vector<uint32_t>>* parts) {
  return Fuser(std::move(validated), parts).Run();
}

}  // namespace opmill
