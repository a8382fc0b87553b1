// LSTM and GRU, step by step.
#include <functional>
#include <string>
#include <utility>

#include "kernels/onnx/expand.h"

namespace opmill::onnx {
namespace {

constexpr int64_t kMostSteps = 1024;

// What LSTM and GRU share: X, W, R, B, sequence_lens, initial_h are their inputs.
class Recurrence {
 public:
  Recurrence(NodeReader& node, Builder& build, int64_t gates) : node_(node), build_(build) {
    const std::string direction = node.String("direction", "forward");
    directions_ = direction == "bidirectional" ? 2 : 1;
    is_reverse_ = direction == "reverse";
    if (node.rank(0) != 3 || node.rank(1) != 3 || node.rank(2) != 3) {
      node.Refuse("X, W and R do not have 3 dimensions.");
    }
    if (!node.ok()) return;
    steps_ = node.sizes(0)[0];
    batch_ = node.sizes(0)[1];
    hidden_ = node.sizes(2)[2];
    if (hidden_ < 1 || node.sizes(1) != Sizes{directions_, gates * hidden_, node.sizes(0)[2]} ||
        node.sizes(2) != Sizes{directions_, gates * hidden_, hidden_}) {
      node.Refuse("W (", ToString(node.input(1).type), ") and R (", ToString(node.input(2).type),
                  ") do not fit to X (", ToString(node.input(0).type), ").");
      return;
    }
    CheckSizes(3, "B", {directions_, 2 * gates * hidden_});
    CheckSizes(5, "initial_h", {directions_, batch_, hidden_});
    CheckSizes(6, "initial_c", {directions_, batch_, hidden_});
    if (node.Int("hidden_size", hidden_) != hidden_) node.Refuse("hidden_size is not ", hidden_);
    if (node.Int("layout", 0) != 0) node.Unsupported("layout 1 is not supported.");
    if (node.HasAttribute("clip")) node.Unsupported("clip is not supported.");
    if (steps_ < 1 || steps_ > kMostSteps) {
      node.Unsupported("it has ", steps_, " steps; supported are 1 to ", kMostSteps, ".");
    }
    if (node.has(4)) {
      for (const int64_t length : node.Integers(4)) {
        if (length != steps_) node.Unsupported("sequences of different lengths are not supported.");
      }
    }
  }

  // The names of activations must be these, in each direction.
  void CheckActivations(const std::vector<std::string>& known) {
    const std::vector<std::string> given = node_.Strings("activations");
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] != known[i % known.size()]) {
        node_.Unsupported("activations other than its defaults are not supported.");
        return;
      }
    }
  }

  // x @ W' + bias for all steps, and its part of a step.
  ValueId ProjectInput(int64_t d, ValueId bias) {
    const ValueId rows = build_.Reshape(node_.node().inputs[0], {steps_ * batch_, -1});
    return Product(rows, Part(1, d), bias);
  }
  ValueId StepOf(ValueId rows, int64_t step) {
    if (steps_ == 1) return rows;
    return SliceRows(rows, step * batch_, (step + 1) * batch_);
  }
  // a @ b' + c; c may be kNoValue.
  ValueId Product(ValueId a, ValueId b, ValueId c) {
    return build_.Add("Gemm", {a, b, c}, {{"transB", int64_t{1}}});
  }

  // The part of direction d of an input whose first dimension is that of directions.
  ValueId Part(size_t input, int64_t d) {
    Sizes sizes = node_.sizes(input);
    const ValueId x = node_.node().inputs[input];
    sizes.erase(sizes.begin());
    return build_.Reshape(directions_ == 1 ? x : SliceRows(x, d, d + 1), sizes);
  }
  // The two halves of B: of the input and of the state.
  std::pair<ValueId, ValueId> Biases(int64_t d) {
    if (!node_.has(3)) return {kNoValue, kNoValue};
    const std::vector<ValueId> halves = Split(Part(3, d), 2, 0);
    return {halves[0], halves[1]};
  }
  ValueId InitialState(size_t input, int64_t d) {
    if (node_.has(input)) return Part(input, d);
    return build_.Add("Expand", {build_.Constant(ScalarOf(node_.element(0), 0)),
                                 build_.Constant({batch_, hidden_})});
  }
  std::vector<ValueId> Gates(ValueId x, int64_t count) { return Split(x, count, 1); }
  std::vector<ValueId> Split(ValueId x, int64_t count, int64_t axis) {
    return build_.AddAll("Split", {x}, static_cast<size_t>(count),
                         {{"axis", axis}, {"num_outputs", count}});
  }

  // Calls compute(direction, step) -> state for each, and returns Y and Y_h.
  std::vector<ValueId> Run(const std::function<std::function<ValueId(int64_t)>(int64_t)>& begin) {
    std::vector<std::vector<ValueId>> states(static_cast<size_t>(steps_));  // [step][direction]
    std::vector<ValueId> last;
    for (int64_t d = 0; d < directions_ && node_.ok(); ++d) {
      const std::function<ValueId(int64_t)> compute = begin(d);
      ValueId state = kNoValue;
      for (int64_t i = 0; i < steps_; ++i) {
        const int64_t step = is_reverse_ || d == 1 ? steps_ - 1 - i : i;
        state = compute(step);
        states[static_cast<size_t>(step)].push_back(build_.Reshape(state, {1, 1, batch_, hidden_}));
      }
      last.push_back(build_.Reshape(state, {1, batch_, hidden_}));
    }
    std::vector<ValueId> steps;
    for (const std::vector<ValueId>& step : states) steps.push_back(Join(step, 1));
    return {Join(steps, 0), Join(last, 0)};
  }
  ValueId Join(const std::vector<ValueId>& parts, int64_t axis) {
    return parts.size() == 1 ? parts[0] : build_.Add("Concat", parts, {{"axis", axis}});
  }

  int64_t batch() const { return batch_; }
  int64_t hidden() const { return hidden_; }

 private:
  // Of an input that may be left out.
  void CheckSizes(size_t input, absl::string_view name, const Sizes& sizes) {
    if (!node_.has(input) || node_.sizes(input) == sizes) return;
    node_.Refuse(name, " (", ToString(node_.input(input).type), ") does not fit to X (",
                 ToString(node_.input(0).type), ").");
  }

  ValueId SliceRows(ValueId x, int64_t begin, int64_t end) {
    return build_.Add("Slice",
                      {x, build_.Constant({begin}), build_.Constant({end}), build_.Constant({0})});
  }

  NodeReader& node_;
  Builder& build_;
  int64_t directions_ = 1;
  bool is_reverse_ = false;
  int64_t steps_ = 0;
  int64_t batch_ = 0;
  int64_t hidden_ = 0;
};

}  // namespace

Expanded ExpandLstm(NodeReader& node, Builder& build) {
  Recurrence lstm(node, build, 4);
  lstm.CheckActivations({"Sigmoid", "Tanh", "Tanh"});
  if (node.has(7)) node.Unsupported("peepholes are not supported.");
  if (node.Int("input_forget", 0) != 0) node.Unsupported("input_forget is not supported.");
  if (!node.ok()) return std::nullopt;
  std::vector<ValueId> last_cells;
  std::vector<ValueId> outputs = lstm.Run([&](int64_t d) {
    const auto [input_bias, state_bias] = lstm.Biases(d);
    const ValueId bias = node.has(3) ? build.Add("Add", {input_bias, state_bias}) : kNoValue;
    const ValueId projected = lstm.ProjectInput(d, bias);
    const ValueId weights = lstm.Part(2, d);
    last_cells.push_back(lstm.InitialState(6, d));
    ValueId state = lstm.InitialState(5, d);
    return [&, projected, weights, state](int64_t step) mutable {
      const std::vector<ValueId> gates =
          lstm.Gates(lstm.Product(state, weights, lstm.StepOf(projected, step)), 4);
      const ValueId input = build.Add("Sigmoid", {gates[0]});
      const ValueId output = build.Add("Sigmoid", {gates[1]});
      const ValueId forget = build.Add("Sigmoid", {gates[2]});
      const ValueId cell = build.Add("Tanh", {gates[3]});
      ValueId& last = last_cells.back();
      last = build.Add("Add", {build.Add("Mul", {forget, last}), build.Add("Mul", {input, cell})});
      state = build.Add("Mul", {output, build.Add("Tanh", {last})});
      return state;
    };
  });
  for (ValueId& cell : last_cells) cell = build.Reshape(cell, {1, lstm.batch(), lstm.hidden()});
  outputs.push_back(lstm.Join(last_cells, 0));
  return outputs;
}

Expanded ExpandGru(NodeReader& node, Builder& build) {
  Recurrence gru(node, build, 3);
  gru.CheckActivations({"Sigmoid", "Tanh"});
  const bool resets_after = node.Int("linear_before_reset", 0) != 0;
  if (!node.ok()) return std::nullopt;
  const ValueId one = build.Constant(ScalarOf(node.element(0), 1));
  return gru.Run([&](int64_t d) {
    const auto [input_bias, state_bias] = gru.Biases(d);
    const std::vector<ValueId> inputs = gru.Gates(gru.ProjectInput(d, input_bias), 3);
    const std::vector<ValueId> weights = gru.Split(gru.Part(2, d), 3, 0);
    std::vector<ValueId> biases(3, kNoValue);
    if (node.has(3)) biases = gru.Split(state_bias, 3, 0);
    ValueId state = gru.InitialState(5, d);
    return [&, inputs, weights, biases, state](int64_t step) mutable {
      const auto gate = [&](size_t g, ValueId from) {
        return gru.Product(from, weights[g], biases[g]);
      };
      const auto sum = [&](size_t g, ValueId x) {
        return build.Add("Add", {gru.StepOf(inputs[g], step), x});
      };
      const ValueId update = build.Add("Sigmoid", {sum(0, gate(0, state))});
      const ValueId reset = build.Add("Sigmoid", {sum(1, gate(1, state))});
      const ValueId hidden = resets_after ? build.Add("Mul", {reset, gate(2, state)})
                                          : gate(2, build.Add("Mul", {reset, state}));
      const ValueId fresh = build.Add("Tanh", {sum(2, hidden)});
      const ValueId kept = build.Add("Mul", {update, state});
      state = build.Add("Add", {build.Add("Mul", {build.Add("Sub", {one, update}), fresh}), kept});
      return state;
    };
  });
}

}  // namespace opmill::onnx
