#include "tests/conformance/case_generator.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/operator_plan.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "tests/conformance/operator_variants.h"
#include "tests/conformance/random.h"

namespace opmill {
namespace {

// The reference computes tens of millions of elements per second.
constexpr uint64_t kMostElements = 1 << 17;
constexpr uint64_t kUsualElements = 1 << 13;
constexpr uint64_t kUsualLength = 1 << 14;  // longer ones are used every second time
constexpr uint64_t kMostInputBytes = 8 << 20;
constexpr size_t kMostDispatches = 600;

constexpr std::array<uint32_t, 46> kLengths = {
    1,    2,    3,     4,     5,     7,     8,     9,     15,    16,   17,   31,
    32,   33,   63,    64,    65,    127,   128,   129,   255,   256,  257,  511,
    512,  513,  1023,  1024,  1025,  2047,  2048,  2049,  4095,  4096, 4097, 8191,
    8193, 9999, 16385, 32767, 32768, 32769, 65535, 65536, 65537, 70001};
constexpr std::array<uint32_t, 16> kSideLengths = {1, 2, 2,  3,  3,  4,  5,  7,
                                                   8, 9, 15, 16, 17, 33, 65, 130};

struct Shape {
  std::vector<uint32_t> sizes;
  std::vector<uint32_t> axes;
};

// `length` elements are reduced along one axis, or, with `many_rows`, `length` results are kept.
Shape MakeShape(AxisPattern pattern, uint32_t length, bool many_rows, bool one_axis,
                Random& random) {
  uint64_t room = std::max<uint64_t>(kMostElements / length, 1);
  if (uint64_t{length} < kUsualElements) room = std::min(room, kUsualElements / length + 1);
  const auto side = [&] {
    const uint32_t size =
        static_cast<uint32_t>(std::min<uint64_t>(random.Pick(kSideLengths), room));
    room /= size;
    return size;
  };
  const uint32_t other = side();
  const uint32_t main = many_rows ? other : length;  // of the reduced axis
  const uint32_t kept = many_rows ? length : other;
  switch (pattern) {
    case AxisPattern::kLast:
      if (random.OneIn(2)) return {{kept, main}, {1}};
      return {{side(), kept, main}, {2}};
    case AxisPattern::kFirst:
      if (random.OneIn(2)) return {{main, kept}, {0}};
      return {{main, side(), kept}, {0}};
    case AxisPattern::kMiddle:
      return {{side(), main, kept}, {1}};
    case AxisPattern::kAll:
      if (one_axis || random.OneIn(3)) return {{length}, {0}};
      return {{side(), length, side()}, {1, 0, 2}};
    case AxisPattern::kOuterTwo:
      if (one_axis) return {{main, side(), kept, 1}, {0}};
      return {{main, side(), kept}, {0, 1}};
    case AxisPattern::kScattered:
      if (one_axis) return {{side(), 1, side(), main, 1, kept, 1, side()}, {3}};
      if (random.OneIn(2)) return {{side(), kept, main, side(), 2}, {4, 0, 2}};
      return {{main, side(), 1, kept, side(), 1, side(), 1}, {6, 2, 0, 4}};
  }
  return {{length}, {0}};
}

// Packed strides, with the dimensions in the order `outermost_first`.
std::vector<uint32_t> Layout(const std::vector<uint32_t>& sizes,
                             const std::vector<size_t>& outermost_first, uint32_t unit,
                             Random* padding) {
  std::vector<uint32_t> strides(sizes.size());
  uint32_t stride = unit;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[outermost_first[i]] = stride;
    stride = stride * sizes[outermost_first[i]];
    if (padding != nullptr) stride += static_cast<uint32_t>(padding->Below(5));
  }
  return strides;
}

std::vector<uint32_t> MakeStrides(StridePattern pattern, const std::vector<uint32_t>& sizes,
                                  Random& random) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  switch (pattern) {
    case StridePattern::kPadded:
      return Layout(sizes, order, 1, &random);
    case StridePattern::kTransposed:
      random.Shuffle(order);
      return Layout(sizes, order, 1, nullptr);
    case StridePattern::kBroadcast: {
      std::vector<uint32_t> strides = Layout(sizes, order, 1, nullptr);
      strides[random.Below(strides.size())] = 0;
      return strides;
    }
    case StridePattern::kScaled:
      return Layout(sizes, order, 2 + static_cast<uint32_t>(random.Below(2)), &random);
    case StridePattern::kSliding:
      return std::vector<uint32_t>(sizes.size(), 1);
    case StridePattern::kPacked:
    case StridePattern::kStridedOutput:
      break;
  }
  return {};
}

absl::StatusOr<OperatorDesc> MakeDescOf(const OperatorVariant& variant, const Shape& shape,
                                        const TensorDesc& input, bool strided_outputs,
                                        Random& random) {
  const auto strides_of_others = [&random](const std::vector<uint32_t>& sizes) {
    constexpr StridePattern kPatterns[] = {StridePattern::kPacked, StridePattern::kPadded,
                                           StridePattern::kTransposed, StridePattern::kBroadcast,
                                           StridePattern::kScaled};
    return MakeStrides(random.Pick(kPatterns), sizes, random);
  };
  ASSIGN_OR_RETURN(OperatorDesc desc,
                   MakeDesc(variant, input, shape.axes, strides_of_others, random));
  for (size_t i = 0; strided_outputs && i < desc.outputs.size(); ++i) {
    constexpr StridePattern kPatterns[] = {StridePattern::kPadded, StridePattern::kTransposed,
                                           StridePattern::kScaled};
    if (i > 0 && random.OneIn(2)) continue;
    desc.outputs[i]->strides = MakeStrides(random.Pick(kPatterns), desc.outputs[i]->sizes, random);
  }
  return Validate(std::move(desc));
}

// Half of the cases use the device's own options. The others use small views, so that small tensors
// are sliced like huge ones, and other ways to share work.
PlanOptions ChooseOptions(const PlanOptions& own, Random& random) {
  PlanOptions options = own;
  if (random.OneIn(2)) return options;
  constexpr uint64_t kViews[] = {256, 512, 1024, 4096, 16384, 65536};
  constexpr uint32_t kGroups[] = {1, 2, 4, 16, 64};
  if (!random.OneIn(4)) options.max_view_elements = random.Pick(kViews);
  options.parallel_groups = random.Pick(kGroups);
  return options;
}

// Enlarges the views until the plan exists (top_k's lists must fit into one) and is short enough
// for a test with thousands of cases.
void FitOptions(ConformanceCase& c, uint64_t own_view) {
  // Views that are far too small are detected without planning millions of dispatches: each
  // dispatch reads at most one view of vectors, and has records for a sixteenth of a view of
  // results.
  uint64_t view_elements = 0;
  for (const TensorDesc& input : c.desc.inputs) {
    view_elements = std::max(view_elements, RequiredBytes(input) / 16);
  }
  for (const TensorDesc& output : OutputsOf(c.desc)) {
    view_elements = std::max(view_elements, ElementCount(output) * 16);
  }
  while (c.options.max_view_elements * kMostDispatches < view_elements) {
    c.options.max_view_elements *= 4;
  }
  while (c.options.max_view_elements < own_view) {
    const absl::StatusOr<OperatorPlan> plan = MakePlan(c.desc, c.options);
    if (plan.ok()) {
      size_t dispatches = 0;
      for (const Pass& pass : plan->passes) dispatches += pass.dispatches.size();
      if (dispatches <= kMostDispatches) return;
    }
    c.options.max_view_elements *= 4;
  }
  c.options.max_view_elements = std::min(c.options.max_view_elements, own_view);
}

// Patterns that are significant for the function, more often than others.
ValuePattern ChooseValues(const OperatorVariant& variant, uint32_t turn) {
  if (variant.schema == &kReduceSchema && turn % 3 == 0) {
    const auto function = variant.example().choice<ReduceFunction>("function");
    if (function == ReduceFunction::kMultiply) return ValuePattern::kFactors;
    if (function == ReduceFunction::kLogSum) return ValuePattern::kPositive;
  }
  return static_cast<ValuePattern>(turn % kValuePatternCount);
}

struct Choice {
  DataType type = DataType::kUnknown;
  OperatorVariant variant;
  AxisPattern axes = AxisPattern::kLast;
  StridePattern strides = StridePattern::kPacked;
  ValuePattern values = ValuePattern::kTies;
  uint32_t length = 1;
  bool many_rows = false;
};

// nullopt if the shape is too large for a test with thousands of cases, or the strides of an output
// overlap.
std::optional<ConformanceCase> MakeCase(const Choice& choice, const PlanOptions& own,
                                        uint64_t seed) {
  Random random(seed);
  const Shape shape = MakeShape(choice.axes, choice.length, choice.many_rows,
                                choice.variant.has_one_axis(), random);
  const TensorDesc input = {choice.type, shape.sizes,
                            MakeStrides(choice.strides, shape.sizes, random)};
  if (ElementCount(input) > 2 * kMostElements || RequiredBytes(input) > kMostInputBytes) {
    return std::nullopt;
  }
  absl::StatusOr<OperatorDesc> desc = MakeDescOf(
      choice.variant, shape, input, choice.strides == StridePattern::kStridedOutput, random);
  if (!desc.ok()) return std::nullopt;
  ConformanceCase c = {.desc = *std::move(desc),
                       .values = choice.values,
                       .seed = seed,
                       .options = ChooseOptions(own, random)};
  FitOptions(c, own.max_view_elements);
  return c;
}

// Kernels cost this test far more than cases: a software device takes a fifth of a second to
// compile one. Each function of a type may therefore use a limited number of kernels; its other
// cases reuse them.
class KernelAllowance {
 public:
  explicit KernelAllowance(size_t kernels_of_a_function) : allowed_(kernels_of_a_function) {}

  void NextFunction() { left_ = allowed_; }

  // Returns false, without counting, if the case needs more new kernels than are left.
  bool Take(const ConformanceCase& c) {
    const absl::StatusOr<OperatorPlan> plan = MakePlan(c.desc, c.options);
    if (!plan.ok()) return false;
    std::vector<KernelPermutation> added;
    for (const KernelPermutation& kernel : plan->kernels) {
      if (!known_.contains(kernel)) added.push_back(kernel);
    }
    if (added.size() > left_) return false;
    left_ -= added.size();
    known_.insert(added.begin(), added.end());
    return true;
  }

 private:
  const size_t allowed_;
  size_t left_ = 0;
  absl::flat_hash_set<KernelPermutation> known_;
};

// One position in the table of a function.
struct Cell {
  uint32_t axes = 0;
  uint32_t length = 0;  // index into kLengths
};

// In an order that covers every layout before the allowance is used up.
std::vector<Cell> ShuffledCells(uint64_t seed) {
  std::vector<Cell> cells;
  for (uint32_t a = 0; a < kAxisPatternCount; ++a) {
    for (uint32_t l = 0; l < kLengths.size(); ++l) cells.push_back({a, l});
  }
  Random random(seed);
  random.Shuffle(cells);
  return cells;
}

}  // namespace

std::vector<ConformanceCase> SystematicCases(DataType type, const PlanOptions& own) {
  std::vector<ConformanceCase> cases;
  const uint32_t number = static_cast<uint32_t>(type);
  const bool widest = type == DataType::kFloat32 || type == DataType::kInt8;
  KernelAllowance allowance(widest ? 24 : 14);
  uint64_t seed = uint64_t{number} * 1'000'000;
  uint32_t f = 0;
  for (const OperatorVariant& variant : VariantsOf(type)) {
    ++f;
    allowance.NextFunction();
    for (const Cell& cell : ShuffledCells(seed + f)) {
      const uint32_t turn = f * 5 + cell.axes * 46 + cell.length;
      ++seed;
      if (kLengths[cell.length] > kUsualLength && turn % 2 != 0) continue;
      Choice choice = {
          .type = type,
          .variant = variant,
          .axes = static_cast<AxisPattern>(cell.axes),
          .strides = static_cast<StridePattern>((turn / 3 + cell.length) % kStridePatternCount),
          .values = ChooseValues(variant, turn),
          .length = kLengths[cell.length],
          .many_rows = turn % 5 == 4};
      for (int attempt = 0; attempt < 4; ++attempt) {
        const std::optional<ConformanceCase> c = MakeCase(choice, own, seed + attempt * 10'000);
        if (c.has_value() && allowance.Take(*c)) {
          cases.push_back(*c);
          break;
        }
        if (attempt == 2) choice.strides = StridePattern::kPacked;
      }
    }
  }
  return cases;
}

ConformanceCase RandomCase(uint64_t seed, const PlanOptions& own) {
  Random random(seed);
  for (;;) {
    const DataType type = random.Pick(kAllDataTypes);
    const OperatorVariant variant = random.Pick(VariantsOf(type));
    const uint32_t longest = uint32_t{1} << random.Below(18);
    const std::optional<ConformanceCase> c =
        MakeCase({.type = type,
                  .variant = variant,
                  .axes = static_cast<AxisPattern>(random.Below(kAxisPatternCount)),
                  .strides = static_cast<StridePattern>(random.Below(kStridePatternCount)),
                  .values = ChooseValues(variant, static_cast<uint32_t>(random.Below(1 << 20))),
                  .length = random.OneIn(2) ? random.Pick(kLengths)
                                            : 1 + static_cast<uint32_t>(random.Below(longest)),
                  .many_rows = random.OneIn(4)},
                 own, random.Bits());
    if (c.has_value()) return *c;
  }
}

}  // namespace opmill
