#include "tests/fxc/kernel_list.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/d3d12/shader/shader_library.h"
#include "kernels/descriptor/attribute_text.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/operator_plan.h"
#include "tests/conformance/movement_cases.h"
#include "tests/conformance/operator_variants.h"
#include "tests/conformance/random.h"
#include "tests/support/macro_pairs.h"

namespace opmill {
namespace {

// The dimensions of the product over which every function is planned.
enum class Spacing { kPacked, kPadded, kScaled };
constexpr std::array<Spacing, 3> kSpacings = {Spacing::kPacked, Spacing::kPadded, Spacing::kScaled};
enum class Twist { kNone, kRepeated, kSliding, kFar };
constexpr std::array<Twist, 4> kTwists = {Twist::kNone, Twist::kRepeated, Twist::kSliding,
                                          Twist::kFar};
// Kept and reduced dimensions, outermost first. The last of each gets the tested length.
constexpr std::array<std::string_view, 9> kOrders = {"KR",   "RK",   "R",     "RKR",    "KRK",
                                                     "KRKR", "RKRK", "RKRKR", "KRKRKRK"};

constexpr std::array<uint32_t, 34> kReducedLengths = {
    1,       2,      3,       4,       5,     8,       15,      16,
    17,      31,     32,      33,      64,    65,      100,     128,
    129,     256,    257,     1000,    1024,  1025,    4096,    4097,
    8192,    9999,   1 << 14, 1 << 16, 70001, 1 << 18, 1 << 20, (1 << 20) + 1,
    1 << 25, 1 << 30};
constexpr std::array<uint32_t, 19> kKeptLengths = {
    1, 2, 3, 4, 5, 7, 8, 16, 17, 64, 65, 256, 1000, 1024, 4096, 70001, 1 << 16, 1 << 20, 1 << 24};
// The list is complete after this many rounds without a new kernel.
constexpr int kQuietRounds = 2500;
constexpr uint64_t kMovementCases = 60;  // of each operator and type
constexpr uint64_t kMostRepeated = 1 << 22;
constexpr uint64_t kMostViews = 6;  // per plan, so that it takes microseconds

// A shape, for any function and type.
struct Draw {
  std::string_view order;
  Spacing spacing = Spacing::kPacked;
  Twist twist = Twist::kNone;
  uint32_t reduced = 1;
  uint32_t kept = 1;
  uint64_t max_view_elements = 0;
  uint64_t seed = 0;  // for the other lengths
};

struct Shape {
  std::vector<uint32_t> sizes;
  std::vector<uint32_t> strides;
  std::vector<uint32_t> axes;
};

// nullopt if a tensor would have too many elements.
std::optional<Shape> ShapeOf(const Draw& draw) {
  Random random(draw.seed);
  Shape shape;
  const size_t last_kept = draw.order.rfind('K');
  const size_t last_reduced = draw.order.rfind('R');
  uint64_t count = 1;
  for (size_t d = 0; d < draw.order.size(); ++d) {
    uint32_t size = 1 + static_cast<uint32_t>(random.Below(8));
    if (d == last_kept) size = draw.kept;
    if (d == last_reduced) size = draw.reduced;
    if (draw.order[d] == 'R') shape.axes.push_back(static_cast<uint32_t>(d));
    shape.sizes.push_back(size);
    count *= size;
    if (count > kMaxElements) return std::nullopt;
  }
  shape.strides = PackedStrides(shape.sizes);
  const uint32_t unit = 2 + static_cast<uint32_t>(random.Below(8));
  for (size_t d = 0; d < shape.strides.size(); ++d) {
    if (draw.spacing == Spacing::kScaled) shape.strides[d] *= unit;
    if (draw.spacing == Spacing::kPadded && d + 1 < shape.strides.size()) shape.strides[d] += unit;
  }
  switch (draw.twist) {
    case Twist::kNone:
      break;
    case Twist::kRepeated:
      shape.strides[random.Below(shape.sizes.size())] = 0;
      break;
    case Twist::kSliding:
      std::fill(shape.strides.begin(), shape.strides.end(), 1u);
      break;
    case Twist::kFar:  // every step of the outermost dimension exceeds the view
      if (shape.sizes[0] > kMostViews) return std::nullopt;
      shape.strides[0] += static_cast<uint32_t>(16 * draw.max_view_elements);
      break;
  }
  return shape;
}

class Collector {
 public:
  // Complete rounds over orders and spacings, with random lengths, functions and types. A shape
  // that yields a new kernel for one of them is planned for all.
  void Collect(const PlanOptions& own) {
    Random random(own.parallel_groups);
    for (int quiet = 0; quiet < kQuietRounds; ++quiet) {
      const size_t known = kernels_.size();
      for (const std::string_view order : kOrders) {
        for (const Spacing spacing : kSpacings) {
          for (const Twist twist : kTwists) {
            const Draw draw = {.order = order,
                               .spacing = spacing,
                               .twist = twist,
                               .reduced = random.Pick(kReducedLengths),
                               .kept = random.Pick(kKeptLengths),
                               // Small views cut small tensors as those are cut that are larger
                               // than any view.
                               .max_view_elements = random.OneIn(3) ? 512 << random.Below(12)
                                                                    : own.max_view_elements,
                               .seed = random.Bits()};
            const DataType type = random.Pick(kAllDataTypes);
            if (Plan(random.Pick(VariantsOf(type)), type, own, draw, random)) {
              PlanAll(own, draw, random);
            }
          }
        }
      }
      if (kernels_.size() > known) quiet = 0;
    }
  }

  // The text of an element-wise kernel depends on the operator, the types, and the strides of rows.
  void CollectElementWise(const PlanOptions& own) {
    for (const OperatorSchema* const schema : Operators()) {
      if (schema->family != OperatorFamily::kElementWise) continue;
      const FeatureLevelRow& row = schema->support[0].rows[0];
      for (const DataType type : row.types.types()) {
        std::vector<DataType> results = row.result_types.types();
        if (results.empty()) results = {type};
        for (const DataType result : results) {
          for (const std::vector<uint32_t>& strides :
               {std::vector<uint32_t>{}, std::vector<uint32_t>{64, 0},
                std::vector<uint32_t>{1, 7}}) {
            Add(DescOf(*schema, type, result, strides), own);
          }
        }
      }
    }
  }

  // Random cases, as many as it takes.
  void CollectMovement(const PlanOptions& own) {
    for (const OperatorSchema* const schema : Operators()) {
      if (schema->family != OperatorFamily::kMovement) continue;
      for (const DataType type : schema->support[0].rows[0].types.types()) {
        for (uint64_t seed = 0; seed < kMovementCases; ++seed) {
          const ConformanceCase c = RandomMovementCase(*schema, type, seed, own);
          Add(c.desc, c.options);
        }
      }
    }
  }

  // Large tiles, small ones and a lane for each result, of short sums and of long ones.
  void CollectMatrix(const PlanOptions& own) {
    using enum ConvolutionDirection;
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      for (const uint32_t depth : {16u, 512u}) {
        for (const uint32_t side : {1u, 64u, 8192u}) {
          Add(GemmDesc{.a = {type, {side, depth}, {}}, .b = {type, {depth, side}, {}}}, own);
        }
        for (const uint32_t batches : {1u, 1024u}) {
          for (const uint32_t channels : {1u, 128u}) {
            Add(ConvolutionDesc{.input = {type, {batches, depth, 16, 16}, {}},
                                .filter = {type, {channels, depth, 3, 3}, {}}},
                own);
            Add(ConvolutionDesc{.input = {type, {batches, depth, 8, 8}, {}},
                                .filter = {type, {depth, channels, 2, 2}, {}},
                                .direction = kBackward,
                                .strides = {2, 2}},
                own);
          }
        }
      }
    }
  }

  // The kernels of pooling depend on the function and the types. Lowered operators add chains.
  void CollectNamed(const PlanOptions& own) {
    const std::vector<uint32_t> sizes = {2, 4, 8, 16};
    for (const OperatorSchema* const schema : Operators()) {
      const bool is_pooling = schema->family == OperatorFamily::kPooling;
      if (!is_pooling && schema->family != OperatorFamily::kLpPooling &&
          schema->family != OperatorFamily::kSoftmax &&
          schema->family != OperatorFamily::kNormalization) {
        continue;
      }
      const FeatureLevelRow& row = schema->support[0].rows[0];
      for (const DataType type : row.types.types()) {
        std::vector<DataType> indices = row.result_types.types();
        if (indices.empty()) indices = {DataType::kUint32};
        for (const DataType index : indices) {
          OperatorDesc desc = DescOf(*schema, type, type, {});
          for (TensorDesc& input : desc.inputs) input.sizes = sizes;
          desc.outputs.assign(schema->outputs.size(), std::nullopt);
          if (desc.outputs.size() > 1) desc.outputs[1] = TensorDesc{index, sizes, {}};
          Add(desc, own);
        }
      }
    }
  }

  KernelList Take() && {
    KernelList list = {.plans = plans_};
    for (auto& [line, kernel] : kernels_) list.kernels.push_back(std::move(kernel));
    return list;
  }

 private:
  static OperatorDesc DescOf(const OperatorSchema& schema, DataType type, DataType result,
                             const std::vector<uint32_t>& strides) {
    const std::vector<uint32_t> sizes = {7, 64};
    OperatorDesc desc = {.schema = &schema, .outputs = {TensorDesc{result, sizes, {}}}};
    for (const TensorSchema& input : schema.inputs) {
      const bool is_condition = input.type == TypeVariable::kOther;
      desc.inputs.push_back({is_condition ? DataType::kUint8 : type, sizes, strides});
    }
    for (const AttributeSchema& attribute : schema.attributes) {
      const absl::StatusOr<AttributeValue> value = DefaultOf(attribute);
      desc.attributes.push_back(value.ok() ? *value : *ParseAttribute(attribute, "1"));
    }
    return desc;
  }

  void Add(const OperatorDesc& desc, const PlanOptions& options) {
    const absl::StatusOr<OperatorDesc> validated = Validate(desc);
    if (!validated.ok()) return;
    const absl::StatusOr<OperatorPlan> plan = MakePlan(*validated, options);
    if (!plan.ok()) return;
    ++plans_;
    for (const KernelPermutation& kernel : plan->kernels) {
      kernels_.try_emplace(ToLine(kernel), kernel);
    }
  }

  void PlanAll(const PlanOptions& own, const Draw& draw, Random& random) {
    constexpr int kAttempts = 6;  // to vary the index types and k
    for (const DataType type : kAllDataTypes) {
      for (const OperatorVariant& variant : VariantsOf(type)) {
        for (int i = 0; i < kAttempts; ++i) Plan(variant, type, own, draw, random);
      }
    }
  }

  // True if the plan has a new kernel.
  bool Plan(const OperatorVariant& variant, DataType type, const PlanOptions& own, const Draw& draw,
            Random& random) {
    const std::optional<Shape> shape = ShapeOf(draw);
    if (!shape.has_value()) return false;
    // Packed, or repeating some dimensions.
    const auto strides_of_others = [&random](const std::vector<uint32_t>& sizes) {
      std::vector<uint32_t> strides = PackedStrides(sizes);
      if (random.OneIn(2)) strides.back() = 0;
      if (random.OneIn(2)) strides[random.Below(strides.size())] = 0;
      return strides;
    };
    absl::StatusOr<OperatorDesc> desc = MakeDesc(variant, {type, shape->sizes, shape->strides},
                                                 shape->axes, strides_of_others, random);
    if (!desc.ok()) return false;  // for example, the tensor is too large
    if (desc->inputs.size() > 1 && random.OneIn(2)) std::swap(desc->inputs[0], desc->inputs[1]);
    // A view holds this many vectors of an input, or records for a sixteenth of this many results.
    uint64_t reach = 0;
    for (const TensorDesc& input : desc->inputs) {
      const uint64_t count = ElementCount(input);
      // Inputs that repeat a few elements endlessly are planned as slowly.
      if (draw.twist == Twist::kRepeated && count > kMostRepeated) return false;
      reach =
          std::max(reach, draw.twist == Twist::kFar ? count * 16
                                                    : std::max(RequiredBytes(input), count) / 16);
    }
    for (const TensorDesc& output : OutputsOf(*desc)) {
      reach = std::max(reach, ElementCount(output) * 16);
    }
    PlanOptions options = own;
    options.max_view_elements = draw.max_view_elements;
    if (reach / draw.max_view_elements > kMostViews) return false;
    const absl::StatusOr<OperatorPlan> plan = MakePlan(*desc, options);
    if (!plan.ok()) return false;
    ++plans_;
    const size_t known = kernels_.size();
    for (const KernelPermutation& kernel : plan->kernels) {
      kernels_.try_emplace(ToLine(kernel), kernel);
    }
    return kernels_.size() > known;
  }

  std::map<std::string, KernelPermutation> kernels_;
  uint64_t plans_ = 0;
};

}  // namespace

std::string ToLine(const KernelPermutation& kernel) {
  std::string line = absl::StrCat(SourceName(kernel), " ", kernel.entry);
  for (const ShaderMacro& macro : kernel.macros) {
    absl::StrAppend(&line, " ", macro.name, "=", macro.value);
  }
  return line;
}

// The text between its braces, without the loads.
static std::string ComputationOf(const std::string& text) {
  const size_t begin = text.find("\n  {\n");
  return begin == std::string::npos ? "" : text.substr(begin, text.rfind("\n  }\n") - begin);
}

std::vector<KernelPermutation> CoverPairs(const std::vector<KernelPermutation>& kernels,
                                          const std::vector<KernelPermutation>& given) {
  std::set<std::string> covered;
  const auto uncovered = [&covered](const KernelPermutation& kernel) {
    std::vector<std::string> pairs = MacroPairs(kernel);
    for (std::string& value : MacroValues(kernel)) pairs.push_back(std::move(value));
    std::erase_if(pairs, [&](const std::string& pair) { return covered.contains(pair); });
    const std::string computation = ComputationOf(kernel.text);
    // As much as all pairs, which few texts add.
    if (!computation.empty() && !covered.contains(computation)) pairs.resize(16, computation);
    return pairs;
  };
  for (const KernelPermutation& kernel : given) {
    const std::vector<std::string> pairs = uncovered(kernel);
    covered.insert(pairs.begin(), pairs.end());
  }
  std::vector<KernelPermutation> chosen;
  // Kernels that cover much come first.
  for (size_t least = 16; least > 0; least /= 2) {
    for (const KernelPermutation& kernel : kernels) {
      const std::vector<std::string> pairs = uncovered(kernel);
      if (pairs.size() < least) continue;
      covered.insert(pairs.begin(), pairs.end());
      chosen.push_back(kernel);
    }
  }
  return chosen;
}

KernelList ListKernels() {
  Collector collector;
  for (const AdapterSize size : {SizeOf(DeviceKind::kSoftware, 0, 0), AdapterSize()}) {
    collector.Collect(PlanOptionsFor(size));
    collector.CollectElementWise(PlanOptionsFor(size));
    collector.CollectMovement(PlanOptionsFor(size));
    collector.CollectMatrix(PlanOptionsFor(size));
    collector.CollectNamed(PlanOptionsFor(size));
  }
  return std::move(collector).Take();
}

}  // namespace opmill
