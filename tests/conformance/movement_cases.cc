#include "tests/conformance/movement_cases.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/descriptor/attribute_text.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/movement/move.h"
#include "kernels/operators/operator_plan.h"
#include "tests/conformance/random.h"

namespace opmill {
namespace {

using Sizes = std::vector<uint32_t>;

constexpr uint64_t kMostElements = 6000;
constexpr size_t kMostDispatches = 100;
constexpr uint32_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 129};

Sizes RandomSizes(uint32_t rank, Random& random) {
  Sizes sizes(rank);
  uint64_t room = kMostElements;
  for (uint32_t& size : sizes) {
    size = static_cast<uint32_t>(std::min<uint64_t>(random.Pick(kSizes), room));
    room = std::max<uint64_t>(room / size, 1);
  }
  random.Shuffle(sizes);
  return sizes;
}

// Packed half of the time; otherwise padded, transposed, apart, and, for inputs, broadcast.
Sizes RandomStrides(const Sizes& sizes, bool may_overlap, Random& random) {
  if (random.OneIn(2)) return {};
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (random.OneIn(2)) random.Shuffle(order);
  const bool pads = random.OneIn(2);
  Sizes strides(sizes.size());
  uint32_t stride = random.OneIn(3) ? 2 : 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride *= sizes[order[i]];
    if (pads) stride += static_cast<uint32_t>(random.Below(5));
  }
  if (may_overlap && random.OneIn(3)) strides[random.Below(strides.size())] = 0;
  return strides;
}

class Maker {
 public:
  Maker(const OperatorSchema& schema, DataType type, Random& random)
      : schema_(schema), random_(random) {
    desc_.schema = &schema;
    desc_.outputs.resize(1);
    const FeatureLevelRow& row = schema.support[0].rows[0];
    uint32_t rank =
        row.min_rank + static_cast<uint32_t>(random.Below(row.max_rank - row.min_rank + 1));
    if (row.max_rank == 8 && !random.OneIn(4)) rank = std::min(rank, 4u);
    sizes_ = RandomSizes(rank, random);
    AddInput(type, sizes_);
  }

  absl::StatusOr<OperatorDesc> Make() {
    AddInputs();
    for (const AttributeSchema& attribute : schema_.attributes) {
      desc_.attributes.push_back(ValueOf(attribute));
    }
    desc_.outputs.clear();
    desc_.outputs.resize(1);
    absl::StatusOr<OperatorDesc> validated = Validate(desc_);
    if (!validated.ok()) return validated;
    desc_.outputs = validated->outputs;
    desc_.outputs[0]->strides = RandomStrides(desc_.outputs[0]->sizes, false, random_);
    return Validate(desc_);
  }

 private:
  uint32_t rank() const { return static_cast<uint32_t>(sizes_.size()); }
  bool Is(absl::string_view name) const { return schema_.name == name; }
  uint32_t Below(uint64_t limit) { return static_cast<uint32_t>(random_.Below(limit)); }

  void AddInput(DataType type, const Sizes& sizes) {
    desc_.inputs.push_back({type, sizes, RandomStrides(sizes, true, random_)});
  }

  void AddInputs() {
    axis_ = Below(rank());
    const DataType type = desc_.inputs[0].data_type;
    const std::vector<DataType> types = schema_.support[0].rows[0].other_types.types();
    const DataType index = types.empty() ? type : random_.Pick(types);
    Sizes sizes = sizes_;
    if (Is("join")) {
      for (uint32_t i = Below(8); i > 0; --i) {
        sizes[axis_] = 1 + Below(9);
        AddInput(type, sizes);
      }
    } else if (Is("gather")) {
      // Leading dimensions of size 1 make room for those of the indices.
      dimensions_ = Below(rank() + 1);
      for (uint32_t d = 0; d + 1 < dimensions_ && d < axis_; ++d) sizes_[d] = 1;
      axis_ = std::max(axis_, std::min(rank() - 1, dimensions_ == 0 ? 0 : dimensions_ - 1));
      desc_.inputs.clear();
      AddInput(type, sizes_);
      sizes.assign(rank(), 1);
      for (uint32_t d = rank() - dimensions_; d < rank(); ++d) sizes[d] = 1 + Below(6);
      AddInput(index, sizes);
    } else if (Is("gather_nd1")) {
      AddTuples(type, index);
    } else if (Is("gather_elements") || Is("scatter")) {
      sizes[axis_] = 1 + Below(20);
      AddInput(index, sizes);
      if (Is("scatter")) AddInput(type, sizes);
    } else if (Is("reverse_subsequences")) {
      sizes[axis_] = 1;
      AddInput(index, sizes);
    } else if (Is("space_to_depth1") || Is("depth_to_space1")) {
      block_ = 1 + Below(3);
      sizes = {1 + Below(3), 1 + Below(5), 1 + Below(9), 1 + Below(9)};
      if (Is("depth_to_space1")) {
        sizes[1] *= block_ * block_;
      } else {
        sizes[2] *= block_;
        sizes[3] *= block_;
      }
      desc_.inputs.clear();
      AddInput(type, sizes);
    }
  }

  // Few dimensions of the input, all of which count, among leading ones of size 1.
  void AddTuples(DataType type, DataType index) {
    batches_ = rank() > 2 && random_.OneIn(2) ? 1 : 0;
    const uint32_t leading = rank() / 2;
    for (uint32_t d = 0; d < leading; ++d) sizes_[d] = 1;
    input_dimensions_ = rank() - leading;
    batches_ = std::min(batches_, input_dimensions_ - 1);
    const uint32_t coordinates = 1 + Below(input_dimensions_ - batches_);
    const uint32_t room = rank() - (input_dimensions_ - batches_ - coordinates);
    dimensions_ = batches_ + 1 + Below(room - batches_ + 1);
    dimensions_ = std::clamp(dimensions_, batches_ + 1, std::min(rank(), room + 1));
    desc_.inputs.clear();
    AddInput(type, sizes_);
    Sizes sizes(rank(), 1);
    for (uint32_t d = 0; d < dimensions_; ++d) {
      const bool is_batch = d < batches_;
      sizes[rank() - dimensions_ + d] = is_batch ? sizes_[leading + d] : 1 + Below(7);
    }
    sizes.back() = coordinates;
    AddInput(index, sizes);
  }

  AttributeValue ValueOf(const AttributeSchema& attribute) {
    const absl::string_view name = attribute.name;
    std::vector<uint32_t> numbers(rank());
    std::vector<int32_t> strides(rank());
    std::vector<float> floats(rank());
    if (name == "axis") return axis_;
    if (name == "block_size") return block_;
    if (name == "index_dimensions" || name == "indices_dimension_count") return dimensions_;
    if (name == "input_dimension_count") return input_dimensions_;
    if (name == "batch_dimension_count") return batches_;
    if (name == "value" || name == "padding_value") return Scalar(int64_t{113});
    if (attribute.kind == AttributeKind::kChoice) return Below(attribute.choices.size());
    if (attribute.kind == AttributeKind::kSigned) return static_cast<int32_t>(Below(9)) - 4;
    for (uint32_t d = 0; d < rank(); ++d) {
      if (name == "input_window_offsets") {
        offsets_.push_back(Below(sizes_[d]));
        numbers[d] = offsets_[d];
      } else if (name == "input_window_sizes") {
        numbers[d] = 1 + Below(sizes_[d] - offsets_[d]);
      } else if (name == "input_window_strides") {
        strides[d] = (random_.OneIn(2) ? 1 : -1) * static_cast<int32_t>(1 + Below(3));
      } else if (name == "repeats") {
        numbers[d] = random_.OneIn(2) ? 1 : 1 + Below(3);
      } else if (name == "scales") {
        constexpr float kScales[] = {1, 2, 0.5f, 1.5f, 2.3333333f, 0.3f, 3};
        floats[d] = random_.Pick(kScales);
      } else if (attribute.kind == AttributeKind::kFloatNumbers) {
        constexpr float kOffsets[] = {0, 0.5f, -0.5f, 1.25f};
        floats[d] = random_.Pick(kOffsets);
      } else {
        numbers[d] = random_.OneIn(2) ? 0 : Below(2 * sizes_[d] + 2);
      }
    }
    if (attribute.kind == AttributeKind::kSignedNumbers) return strides;
    if (attribute.kind == AttributeKind::kFloatNumbers) return floats;
    return numbers;
  }

  const OperatorSchema& schema_;
  Random& random_;
  Sizes sizes_;
  OperatorDesc desc_;
  uint32_t axis_ = 0;
  uint32_t block_ = 1;
  uint32_t dimensions_ = 1;
  uint32_t input_dimensions_ = 1;
  uint32_t batches_ = 0;
  std::vector<uint32_t> offsets_;
};

// Too many if there is no plan.
size_t DispatchesOf(const ConformanceCase& c) {
  const absl::StatusOr<OperatorPlan> plan = MakePlan(c.desc, c.options);
  if (!plan.ok()) return kMostDispatches + 1;
  size_t dispatches = 0;
  for (const Pass& pass : plan->passes) dispatches += pass.dispatches.size();
  return dispatches;
}

}  // namespace

ConformanceCase RandomMovementCase(const OperatorSchema& schema, DataType type, uint64_t seed,
                                   const PlanOptions& own) {
  for (uint64_t attempt = 0;; ++attempt) {
    Random random(seed + attempt * 1'000'003);
    absl::StatusOr<OperatorDesc> desc = Maker(schema, type, random).Make();
    if (!desc.ok() || ElementCount(*desc->outputs[0]) > 8 * kMostElements) continue;
    ConformanceCase c = {.desc = *std::move(desc),
                         .values = ValuePattern::kRandomBits,
                         .seed = seed,
                         .options = own};
    // Small views cut small tensors like huge ones.
    constexpr uint64_t kViews[] = {64, 256, 1024, 16384};
    if (random.OneIn(2)) c.options.max_view_elements = random.Pick(kViews);
    while (DispatchesOf(c) > kMostDispatches) c.options.max_view_elements *= 4;
    return c;
  }
}

std::vector<std::byte> MakeIndices(const OperatorDesc& validated, size_t input, uint64_t seed) {
  uint64_t size = 1;
  for (const Move& move : MovesOf(validated)) {
    for (const IndexedDim& dim : move.indexed) size = std::max(size, dim.size);
  }
  const TensorDesc& desc = validated.inputs[input];
  const uint32_t bytes = ElementBytes(desc.data_type);
  std::vector<std::byte> indices(RequiredBytes(desc));
  Random random(seed);
  for (uint64_t at = 0; at + bytes <= indices.size(); at += bytes) {
    uint64_t index = random.Below(size);
    if (random.OneIn(9)) index = size + random.Below(3);  // out of range
    if (random.OneIn(9)) index = random.Bits();
    if (random.OneIn(3)) index = 0 - random.Below(size + 2);
    std::memcpy(indices.data() + at, &index, bytes);
  }
  return indices;
}

}  // namespace opmill
