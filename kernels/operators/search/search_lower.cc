#include "kernels/operators/search/search_lower.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "kernels/base/rounding.h"
#include "kernels/descriptor/operator_limits.h"
#include "kernels/operators/elementwise/element_wise_chain.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/movement/movement.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/search/search_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "kernels/program/program.h"

namespace opmill {
namespace {

using enum DataType;
using enum ElementWiseOp;

constexpr uint64_t kChunkElements = uint64_t{1} << 24;  // 64 MiB
// Chunks begin at multiples of this, so that kernels can read them in place.
constexpr uint64_t kChunkStep = 64;
// More chunks make programs that take long to plan. Then scores may take more memory.
constexpr uint64_t kMostChunks = 512;
// Sums of so many products of INT8 are exact in FLOAT32: 2^10 * 2^14 = 2^24.
constexpr uint32_t kExactProducts = 1024;

uint64_t ChunkOf(const SearchDesc& desc, uint64_t elements) {
  const uint64_t vectors = desc.vectors.sizes[0];
  uint64_t row = desc.queries.sizes[0];
  if (desc.queries.data_type != kFloat32) row = std::max<uint64_t>(row, desc.queries.sizes[1]);
  const uint64_t chunks = std::clamp<uint64_t>(
      CeilDiv(vectors, std::max<uint64_t>(1, elements / row)), 1, std::min(kMostChunks, vectors));
  return CeilDiv(CeilDiv(vectors, chunks), kChunkStep) * kChunkStep;
}

// A value as a node reads it.
struct Part {
  ProgramView view;
  TensorDesc tensor;
};

// A chunk's nearest vectors, in order.
struct List {
  Part keys;  // [Q, length]
  Part indices;
};

// Keys are numbers of which the smallest comes first: distances, or negative products. NaN, or of
// INT32 the largest number, means that a vector is not found; no score has that key.
class SearchLowering {
 public:
  SearchLowering(const OperatorDesc& validated, uint64_t chunk_elements)
      : desc_(SearchDesc::From(validated)),
        queries_(desc_.queries.sizes[0]),
        is_exact_(desc_.output_scores->data_type == kInt32),
        chunk_(static_cast<uint32_t>(
            std::min<uint64_t>(ChunkOf(desc_, chunk_elements), desc_.vectors.sizes[0]))) {
    for (const TensorDesc& input : validated.inputs) {
      program_.values.push_back({ValueKind::kInput, input});
    }
    scores_ = NewValue(ValueKind::kOutput, *desc_.output_scores);
    indices_ = NewValue(ValueKind::kOutput, *desc_.output_indices);
  }

  Program Run() {
    const uint32_t vectors = desc_.vectors.sizes[0];
    const Part queries = InFloat32({0, desc_.queries});
    const Part query_norms = NormsOf({0, desc_.queries}, queries);
    std::vector<List> lists;
    for (uint32_t first = 0; first < vectors; first += chunk_) {
      lists.push_back(SearchChunk(queries, query_norms, first, std::min(chunk_, vectors - first)));
    }
    while (lists.size() > 1) {
      std::vector<List> joined;
      for (size_t at = 0; at < lists.size(); at += kMaxInputs) {
        const size_t count = std::min(kMaxInputs, lists.size() - at);
        joined.push_back(count == 1 ? lists[at] : Join({lists.data() + at, count}));
      }
      lists = std::move(joined);
    }
    Return(lists[0]);
    return std::move(program_);
  }

 private:
  uint32_t NewValue(ValueKind kind, const TensorDesc& tensor) {
    program_.values.push_back({kind, tensor});
    return static_cast<uint32_t>(program_.values.size() - 1);
  }
  Part NewPart(DataType type, std::vector<uint32_t> sizes) {
    const TensorDesc tensor = {type, std::move(sizes), {}};
    return {NewValue(ValueKind::kIntermediate, tensor), tensor};
  }

  // Adds a node with packed outputs of its own.
  Part Add(OperatorDesc desc, const std::vector<Part>& inputs) {
    const TensorDesc& output = *desc.outputs[0];
    const Part result = NewPart(output.data_type, output.sizes);
    Add(std::move(desc), inputs, {result.view.value});
    return result;
  }
  void Add(OperatorDesc desc, const std::vector<Part>& inputs, std::vector<uint32_t> outputs) {
    std::vector<ProgramView> views;
    for (const Part& input : inputs) views.push_back(input.view);
    program_.nodes.push_back({std::move(desc), std::move(views), std::move(outputs)});
  }

  // A chain whose inputs are broadcast to the sizes of `to`.
  void AddChain(const std::vector<Part>& inputs, std::vector<ChainStep> steps, const Part& to) {
    Chain chain = {.output = to.tensor, .steps = std::move(steps)};
    for (const Part& input : inputs) {
      TensorDesc& tensor = chain.inputs.emplace_back(input.tensor);
      tensor.strides = EffectiveStrides(tensor);
      for (size_t d = 0; d < tensor.sizes.size(); ++d) {
        if (tensor.sizes[d] == 1) tensor.strides[d] = 0;
      }
      tensor.sizes = to.tensor.sizes;
    }
    // A chain of valid steps within the limits.
    Add(DescribeChain(chain).value(), inputs, {to.view.value});
  }
  Part Map(DataType type, const std::vector<uint32_t>& sizes, const std::vector<Part>& inputs,
           std::vector<ChainStep> steps) {
    const Part result = NewPart(type, sizes);
    AddChain(inputs, std::move(steps), result);
    return result;
  }

  static ChainStep Constant(DataType type, uint32_t operand, uint64_t bits) {
    if (type == kFloat32) {  // 0 * x + constant; x is finite
      return {kLinear, type, {operand}, {std::bit_cast<uint32_t>(0.0f), bits}};
    }
    return {kClip, type, {operand}, {bits, bits}};
  }

  Part InFloat32(const Part& rows) {
    if (rows.tensor.data_type == kFloat32) return rows;
    return Map(kFloat32, rows.tensor.sizes, {rows}, {{kCast, kFloat32, {0}, {}}});
  }

  // Of each row what its scores need: the sum of squares for L2, the inverse of its root for
  // COSINE; [rows, 1]. `rows` has the operator's type.
  Part NormsOf(const Part& rows, const Part& in_float32) {
    if (desc_.metric == SearchMetric::kInnerProduct) return {0, {}};
    const std::vector<uint32_t> sizes = {rows.tensor.sizes[0], 1};
    const Part elements =
        is_exact_ ? Map(kInt32, rows.tensor.sizes, {rows}, {{kCast, kInt32, {0}, {}}}) : in_float32;
    Part squares = Add(ReduceDesc{ReduceFunction::kSumSquare,
                                  elements.tensor,
                                  TensorDesc{elements.tensor.data_type, sizes, {}},
                                  {1}},
                       {elements});
    if (desc_.metric == SearchMetric::kL2) return squares;
    // 0 for a row of zeros.
    return Map(kFloat32, sizes, {squares},
               {{kSqrt, kFloat32, {0}, {}},
                {kRecip, kFloat32, {1}, {}},
                {kLinear, kFloat32, {0}, {0, 0}},
                {kLogicalEquals, kUint8, {0, 3}, {}},
                {kIf, kFloat32, {4, 3, 2}, {}}});
  }

  // The products of all queries with vectors, exact for INT8.
  Part ProductsOf(const Part& queries, const Part& vectors) {
    const uint32_t dims = desc_.queries.sizes[1];
    const uint32_t count = vectors.tensor.sizes[0];
    const uint32_t step = is_exact_ ? kExactProducts : dims;
    std::optional<Part> sum;
    for (uint32_t first = 0; first < dims; first += step) {
      const auto cut = [&](Part rows) {
        rows.tensor.strides = EffectiveStrides(rows.tensor);
        rows.view.first_element += uint64_t{first} * rows.tensor.strides[1];
        rows.tensor.sizes[1] = std::min(step, dims - first);
        return rows;
      };
      const Part a = cut(queries);
      const Part b = cut(vectors);
      const Part products = Add(GemmDesc{.a = a.tensor,
                                         .b = b.tensor,
                                         .output = TensorDesc{kFloat32, {queries_, count}, {}},
                                         .trans_b = MatrixTransform::kTranspose},
                                {a, b});
      if (!is_exact_) return products;
      std::vector<Part> inputs = {products};
      std::vector<ChainStep> steps = {{kCast, kInt32, {0}, {}}};
      if (sum.has_value()) {
        inputs.push_back(*sum);
        steps = {{kCast, kInt32, {0}, {}}, {kAdd, kInt32, {1, 2}, {}}};
      }
      sum = Map(kInt32, {queries_, count}, inputs, steps);
    }
    return *sum;
  }

  List SearchChunk(const Part& queries, const Part& query_norms, uint32_t first, uint32_t count) {
    Part rows = {1, desc_.vectors};
    rows.tensor.strides = EffectiveStrides(rows.tensor);
    rows.view.first_element = uint64_t{first} * rows.tensor.strides[0];
    rows.tensor.sizes[0] = count;
    if (IsPacked(rows.tensor)) rows.tensor.strides.clear();
    const Part vectors = InFloat32(rows);
    const Part keys =
        KeysOf(ProductsOf(queries, vectors), query_norms, NormsOf(rows, vectors), first, count);
    List best = Best(keys, std::min(desc_.k, count));
    if (first > 0) {
      best.indices = Map(kUint32, best.indices.tensor.sizes, {best.indices},
                         {Constant(kUint32, 0, first), {kAdd, kUint32, {0, 1}, {}}});
    }
    return best;
  }

  Part KeysOf(const Part& products, const Part& query_norms, Part vector_norms, uint32_t first,
              uint32_t count) {
    const DataType type = products.tensor.data_type;
    std::vector<Part> inputs = {products};
    if (desc_.metric != SearchMetric::kInnerProduct) {
      vector_norms.tensor.sizes = {1, count};
      vector_norms.tensor.strides.clear();
      inputs.push_back(query_norms);
      inputs.push_back(vector_norms);
    }
    if (desc_.mask.has_value()) {
      Part& mask = inputs.emplace_back(Part{2, *desc_.mask});
      mask.tensor.strides = EffectiveStrides(mask.tensor);
      mask.view.first_element = uint64_t{first} * mask.tensor.strides[1];
      mask.tensor.sizes[1] = count;
    }
    std::vector<ChainStep> steps;
    const auto add = [&](ElementWiseOp op, std::vector<uint32_t> operands) {
      steps.push_back({op, type, std::move(operands), {}});
      return static_cast<uint32_t>(inputs.size() + steps.size() - 1);
    };
    uint32_t key = 0;
    if (desc_.metric == SearchMetric::kL2) {
      key = add(kSubtract, {add(kAdd, {1, 2}), add(kAdd, {0, 0})});
      if (!is_exact_) {  // rounding must not make it negative
        steps.push_back({kThreshold, type, {key}, {std::bit_cast<uint32_t>(0.0f)}});
        ++key;
      }
    } else {
      if (desc_.metric == SearchMetric::kCosine) key = add(kMultiply, {add(kMultiply, {0, 1}), 2});
      key = add(kNegate, {key});
    }
    if (desc_.mask.has_value()) {
      const auto mask = static_cast<uint32_t>(inputs.size() - 1);
      uint32_t operand = key;
      if (type == kFloat32) {
        steps.push_back({kCast, kFloat32, {mask}, {}});
        operand = static_cast<uint32_t>(inputs.size() + steps.size() - 1);
      }
      steps.push_back(Constant(type, operand, NoKey()));
      const auto none = static_cast<uint32_t>(inputs.size() + steps.size() - 1);
      steps.push_back({kIf, type, {mask, key, none}, {}});
    }
    return Map(type, {queries_, count}, inputs, std::move(steps));
  }

  uint64_t NoKey() const {
    return is_exact_ ? std::numeric_limits<int32_t>::max()
                     : std::bit_cast<uint32_t>(std::numeric_limits<float>::quiet_NaN());
  }

  // The first k of each query's keys, with their places. Equal keys stay in their order, and NaN is
  // last.
  List Best(const Part& keys, uint32_t k) {
    const std::vector<uint32_t> sizes = {queries_, k};
    const List best = {NewPart(keys.tensor.data_type, sizes), NewPart(kUint32, sizes)};
    Add(TopKDesc{.input = keys.tensor,
                 .output_values = best.keys.tensor,
                 .output_indices = best.indices.tensor,
                 .axis = 1,
                 .k = k,
                 .axis_direction = AxisDirection::kIncreasing},
        {keys}, {best.keys.view.value, best.indices.view.value});
    return best;
  }

  Part JoinAlong(const std::vector<Part>& parts) {
    OperatorDesc desc = {.schema = &kJoinSchema, .attributes = {uint32_t{1}}};
    uint32_t length = 0;
    for (const Part& part : parts) {
      desc.inputs.push_back(part.tensor);
      length += part.tensor.sizes[1];
    }
    desc.outputs = {TensorDesc{parts[0].tensor.data_type, {queries_, length}, {}}};
    return Add(std::move(desc), parts);
  }

  // The best of lists of consecutive chunks.
  List Join(absl::Span<const List> lists) {
    std::vector<Part> keys;
    std::vector<Part> indices;
    for (const List& list : lists) {
      keys.push_back(list.keys);
      indices.push_back(list.indices);
    }
    const Part all = JoinAlong(keys);
    List best = Best(all, std::min(desc_.k, all.tensor.sizes[1]));
    const Part all_indices = JoinAlong(indices);
    best.indices = Add({.schema = &kGatherElementsSchema,
                        .inputs = {all_indices.tensor, best.indices.tensor},
                        .outputs = {best.indices.tensor},
                        .attributes = {uint32_t{1}}},
                       {all_indices, best.indices});
    return best;
  }

  // Writes the outputs.
  void Return(const List& best) {
    // Whether a place is empty, as UINT8.
    const std::vector<ChainStep> is_empty =
        is_exact_ ? std::vector<ChainStep>{Constant(kInt32, 0, NoKey()),
                                           {kLogicalEquals, kUint8, {0, 1}, {}}}
                  : std::vector<ChainStep>{{kIsNan, kUint8, {0}, {}}};
    const Part empty = Map(kUint8, best.keys.tensor.sizes, {best.keys}, is_empty);
    AddChain({best.indices, empty},
             {Constant(kUint32, 0, kNotFound), {kIf, kUint32, {1, 2, 0}, {}}},
             {indices_, *desc_.output_indices});
    const DataType type = best.keys.tensor.data_type;
    std::vector<ChainStep> steps;
    uint32_t score = 0;
    uint32_t operand = 0;
    const auto last = [&] { return static_cast<uint32_t>(1 + steps.size()); };
    if (!desc_.smallest_first()) {
      if (is_exact_) {
        steps.push_back({kNegate, type, {0}, {}});
      } else {  // no -0
        steps.push_back(
            {kLinear, type, {0}, {std::bit_cast<uint32_t>(-1.0f), std::bit_cast<uint32_t>(0.0f)}});
      }
      score = last();
    }
    if (!is_exact_) {
      steps.push_back({kCast, kFloat32, {1}, {}});
      operand = last();
    }
    steps.push_back(Constant(type, operand, EmptyScore(desc_)));
    steps.push_back({kIf, type, {1, last(), score}, {}});
    AddChain({best.keys, empty}, std::move(steps), {scores_, *desc_.output_scores});
  }

  const SearchDesc desc_;
  const uint32_t queries_;
  const bool is_exact_;   // scores of INT32
  const uint32_t chunk_;  // vectors
  Program program_;
  uint32_t scores_ = 0;
  uint32_t indices_ = 0;
};

}  // namespace

Program LowerSearchInChunks(const OperatorDesc& validated, uint64_t chunk_elements) {
  return SearchLowering(validated, chunk_elements).Run();
}

Program LowerSearch(const OperatorDesc& validated) {
  return LowerSearchInChunks(validated, kChunkElements);
}

}  // namespace opmill
