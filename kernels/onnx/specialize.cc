#include "kernels/onnx/specialize.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/onnx/fold_scales.h"
#include "kernels/onnx/gather_first.h"
#include "kernels/onnx/one_hot.h"
#include "kernels/onnx/operator_table.h"

namespace opmill::onnx {
namespace {

// Finds the values that must be known before a run, from the last node to the first.
class FormSearch {
 public:
  explicit FormSearch(const Graph& graph) : graph_(graph), is_form_(graph.values.size(), false) {}

  std::vector<std::string> Run() {
    Search(graph_.nodes);
    std::vector<std::string> names;
    for (const Input& input : graph_.inputs) {
      const bool is_number = input.element != ElementType::kString &&
                             !IsFloat(DataTypeOf(input.element)) &&
                             input.element != ElementType::kDouble;
      if (is_form_[input.value] && is_number) names.push_back(graph_.values[input.value].name);
    }
    return names;
  }

 private:
  void Search(const std::vector<Node>& nodes) {
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      bool is_form = std::any_of(node->outputs.begin(), node->outputs.end(),
                                 [&](ValueId id) { return id != kNoValue && is_form_[id]; });
      for (const auto& [name, attribute] : node->attributes) {
        const auto* const block = std::get_if<std::shared_ptr<const Block>>(&attribute);
        if (block == nullptr) continue;
        for (const ValueId id : (*block)->outputs) is_form_[id] = is_form_[id] || is_form;
        Search((*block)->nodes);
      }
      const OperatorRow* const row = FindOperator(node->op);
      // The sizes of a value are known.
      if (node->op == "Shape" || node->op == "Size") is_form = false;
      const uint32_t form = node->op == "If" ? 1 : row == nullptr ? 0 : row->form_inputs;
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        const bool is_its = is_form || (i < 32 && (form >> i & 1) != 0);
        if (node->inputs[i] != kNoValue && is_its) is_form_[node->inputs[i]] = true;
      }
    }
  }

  const Graph& graph_;
  std::vector<bool> is_form_;
};

class Specializer {
 public:
  Specializer(const Graph& graph, const InputBindings& bindings, const BuildLimits& limits,
              NodeEnds* ends)
      : graph_(graph),
        bindings_(bindings),
        ends_(ends),
        abandoned_(limits.abandoned),
        build_(result_.values, result_.nodes, limits),
        mapped_(graph.values.size(), kUnknown) {}

  absl::StatusOr<Graph> Run() {
    RETURN_IF_ERROR(CheckBindings());
    for (const Input& input : graph_.inputs) RETURN_IF_ERROR(BindInput(input));
    for (const Node& node : graph_.nodes) {
      RETURN_IF_ERROR(CheckAbandoned(abandoned_));
      Add(node);
    }
    RETURN_IF_ERROR(CheckAbandoned(abandoned_));
    if (!refusals_.empty()) return absl::Status(code_, JoinRefusals(refusals_));
    for (const Output& output : graph_.outputs) {
      result_.outputs.push_back(output);
      result_.outputs.back().value = MapInput(output.value);
    }
    return std::move(result_);
  }

 private:
  // Of values that a refused node computes, and of those that follow from them.
  static constexpr ValueId kUnknown = kNoValue - 1;

  absl::Status CheckBindings() const {
    const auto check = [&](const auto& bound) {
      for (const auto& entry : bound) {
        const std::string& name = entry.first;
        const bool exists = std::any_of(
            graph_.inputs.begin(), graph_.inputs.end(),
            [&](const Input& input) { return graph_.values[input.value].name == name; });
        if (!exists) {
          return absl::InvalidArgumentError(
              absl::StrCat("The model has no input ", Quoted(name), "."));
        }
      }
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(check(bindings_.sizes));
    return check(bindings_.values);
  }

  absl::Status BindInput(const Input& input) {
    const std::string& name = graph_.values[input.value].name;
    TensorType type{input.element, {}};
    if (const auto value = bindings_.values.find(name); value != bindings_.values.end()) {
      if (value->second.type.element != type.element) {
        return absl::InvalidArgumentError(absl::StrCat("Input ", Quoted(name), " is ",
                                                       ToString(type.element), ", not ",
                                                       ToString(value->second.type.element), "."));
      }
      mapped_[input.value] = build_.Constant(value->second);
      return absl::OkStatus();
    }
    if (ElementBytes(type.element) == 0) {
      return absl::UnimplementedError(absl::StrCat("Input ", Quoted(name), " is of type ",
                                                   ToString(type.element),
                                                   ", which is not supported."));
    }
    ASSIGN_OR_RETURN(type.sizes, SizesOf(input, name));
    if (type.sizes.size() > kMaxRank || !ElementCount(type.sizes).has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Input ", Quoted(name), " is ", ToString(type), ", which has a negative ",
          "size, more than ", kMaxElements, " elements or more than ", kMaxRank, " dimensions."));
    }
    if (ElementCount(type.sizes) == 0) {
      return absl::UnimplementedError(
          absl::StrCat("Input ", Quoted(name), " is ", ToString(type), ", which has no element."));
    }
    const ValueId id = static_cast<ValueId>(result_.values.size());
    result_.values.push_back({.name = name, .type = std::move(type)});
    Input& bound = result_.inputs.emplace_back(input);
    bound.value = mapped_[input.value] = id;
    return absl::OkStatus();
  }

  absl::StatusOr<Sizes> SizesOf(const Input& input, const std::string& name) const {
    const auto given = bindings_.sizes.find(name);
    if (given == bindings_.sizes.end()) {
      Sizes sizes;
      for (const Dimension& dimension : input.dimensions.value_or(std::vector<Dimension>{{}})) {
        if (!dimension.size.has_value()) {
          return absl::InvalidArgumentError(absl::StrCat(
              "The sizes of input ", Quoted(name), " are not fixed by the model, and not given."));
        }
        sizes.push_back(*dimension.size);
      }
      return sizes;
    }
    const Sizes& sizes = given->second;
    if (!input.dimensions.has_value()) return sizes;
    bool fits = input.dimensions->size() == sizes.size();
    for (size_t d = 0; fits && d < sizes.size(); ++d) {
      fits = (*input.dimensions)[d].size.value_or(sizes[d]) == sizes[d];
    }
    if (fits) return sizes;
    const auto append = [](std::string* text, const Dimension& dimension) {
      absl::StrAppend(text, dimension.size.has_value() ? absl::StrCat(*dimension.size)
                            : dimension.name.empty()   ? "?"
                                                       : Excerpt(dimension.name));
    };
    return absl::InvalidArgumentError(absl::StrCat(
        "Input ", Quoted(name), " has the sizes [", absl::StrJoin(sizes, ","),
        "], but the model says [", absl::StrJoin(*input.dimensions, ",", append), "]."));
  }

  // A constant of the source becomes one of the result when it is first read.
  ValueId MapInput(ValueId id) {
    if (id == kNoValue) return id;
    const Value& value = graph_.values[id];
    if (mapped_[id] == kUnknown && value.constant != nullptr) {
      mapped_[id] = static_cast<ValueId>(result_.values.size());
      result_.values.push_back(value);
    }
    return mapped_[id];
  }

  void Map(const std::vector<ValueId>& from, const std::vector<ValueId>& to) {
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] != kNoValue) mapped_[from[i]] = i < to.size() ? to[i] : kUnknown;
    }
  }

  void Refuse(const absl::Status& why) {
    refusals_.emplace_back(why.message());
    if (absl::IsInvalidArgument(why)) code_ = why.code();
  }

  void Add(const Node& source) {
    Node node = source;
    for (ValueId& id : node.inputs) {
      id = MapInput(id);
      if (id == kUnknown) return;
    }
    if (node.op == "If") return AddBranch(source, node);
    const size_t first = result_.nodes.size();
    absl::StatusOr<std::vector<ValueId>> outputs = build_.AddNode(std::move(node));
    if (!outputs.ok()) return Refuse(outputs.status());
    Map(source.outputs, *outputs);
    const bool is_constant =
        (*outputs)[0] != kNoValue && result_.values[(*outputs)[0]].constant != nullptr;
    End(source, is_constant                    ? NodeEnd::kConstant
                : result_.nodes.size() > first ? NodeEnd::kNodes
                                               : NodeEnd::kInput);
  }

  void End(const Node& source, NodeEnd end) {
    if (ends_ != nullptr) (*ends_)[source.sources[0]] = end;
  }

  void AddBranch(const Node& source, const Node& node) {
    NodeReader reader(node, result_.values);
    const bool is_known = reader.IsConstant(0) && !reader.input(0).constant->empty();
    if (!is_known) {
      reader.Unsupported(
          "its condition is computed from data, so that its branch is not known "
          "before a run.");
      return Refuse(reader.status());
    }
    const bool condition = (*reader.input(0).constant)[0] != 0;
    const auto found = node.attributes.find(condition ? "then_branch" : "else_branch");
    const auto* const block = found == node.attributes.end()
                                  ? nullptr
                                  : std::get_if<std::shared_ptr<const Block>>(&found->second);
    if (block == nullptr || (*block)->outputs.size() != source.outputs.size()) {
      reader.Refuse("its branch does not have ", source.outputs.size(), " outputs.");
      return Refuse(reader.status());
    }
    End(source, NodeEnd::kBranch);
    for (const Node& inner : (*block)->nodes) Add(inner);
    std::vector<ValueId> outputs;
    for (const ValueId id : (*block)->outputs) outputs.push_back(MapInput(id));
    Map(source.outputs, outputs);
  }

  const Graph& graph_;
  const InputBindings& bindings_;
  NodeEnds* const ends_;  // may be null
  const std::stop_token& abandoned_;
  Graph result_;
  Builder build_;
  std::vector<ValueId> mapped_;  // of the source's values
  std::vector<std::string> refusals_;
  absl::StatusCode code_ = absl::StatusCode::kUnimplemented;
};

}  // namespace

std::string JoinRefusals(const std::vector<std::string>& refusals) {
  constexpr size_t kMostBytes = 1500;
  std::string text;
  for (size_t i = 0; i < refusals.size(); ++i) {
    if (!text.empty() && text.size() + refusals[i].size() > kMostBytes) {
      return absl::StrCat(text, " And ", refusals.size() - i, " more.");
    }
    absl::StrAppend(&text, i == 0 ? "" : " ", refusals[i]);
  }
  return text;
}

std::vector<std::string> FormInputs(const Graph& graph) { return FormSearch(graph).Run(); }

absl::StatusOr<Graph> Specialize(const Graph& graph, const InputBindings& bindings,
                                 const BuildLimits& limits, NodeEnds* ends) {
  ASSIGN_OR_RETURN(Graph result, Specializer(graph, bindings, limits, ends).Run());
  RemoveUnused(result);
  GatherFirst(result, limits);
  GatherOneHot(result, limits);
  FoldScales(result, limits);
  RETURN_IF_ERROR(CheckAbandoned(limits.abandoned));
  RemoveUnused(result);
  return result;
}

}  // namespace opmill::onnx
