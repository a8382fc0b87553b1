#include "kernels/reference/reference_operators.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kernels/descriptor/half.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {
namespace {

static_assert(std::endian::native == std::endian::little, "Tensor data is little endian.");
static_assert(std::numeric_limits<float>::is_iec559 && std::numeric_limits<double>::is_iec559);

using Coordinate = std::vector<uint32_t>;

uint64_t ElementOffset(const Coordinate& coordinate, const std::vector<uint32_t>& strides) {
  uint64_t offset = 0;
  for (size_t i = 0; i < coordinate.size(); ++i) offset += uint64_t{coordinate[i]} * strides[i];
  return offset;
}

// Calls visit(coordinate) for every coordinate of `sizes` in row-major order, or until `abandoned`.
template <typename Visit>
void ForEachCoordinate(const std::vector<uint32_t>& sizes, const std::stop_token& abandoned,
                       Visit visit) {
  Coordinate coordinate(sizes.size(), 0);
  while (!abandoned.stop_requested()) {
    visit(std::as_const(coordinate));
    size_t axis = sizes.size();
    while (axis > 0 && ++coordinate[axis - 1] == sizes[axis - 1]) coordinate[--axis] = 0;
    if (axis == 0) return;
  }
}

// A tensor's elements as bits, sign extended for signed integers.
class Reader {
 public:
  Reader(const TensorDesc& desc, absl::Span<const std::byte> bytes)
      : type_(desc.data_type),
        element_bytes_(ElementBytes(desc.data_type)),
        strides_(EffectiveStrides(desc)),
        bytes_(bytes) {}

  uint64_t At(const Coordinate& coordinate) const {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes_.data() + ElementOffset(coordinate, strides_) * element_bytes_,
                element_bytes_);
    switch (type_) {
      case DataType::kInt8:
        return static_cast<uint64_t>(int64_t{static_cast<int8_t>(bits)});
      case DataType::kInt16:
        return static_cast<uint64_t>(int64_t{static_cast<int16_t>(bits)});
      case DataType::kInt32:
        return static_cast<uint64_t>(int64_t{static_cast<int32_t>(bits)});
      default:
        return bits;
    }
  }

 private:
  DataType type_;
  uint32_t element_bytes_;
  std::vector<uint32_t> strides_;
  absl::Span<const std::byte> bytes_;
};

// Stores the low bits of a value as an element. Everything not stored to is zero.
class Writer {
 public:
  Writer(const TensorDesc& desc, absl::Span<std::byte> bytes)
      : element_bytes_(ElementBytes(desc.data_type)),
        strides_(EffectiveStrides(desc)),
        bytes_(bytes) {
    std::memset(bytes_.data(), 0, RequiredBytes(desc));
  }

  void Store(const Coordinate& coordinate, uint64_t bits) {
    std::memcpy(bytes_.data() + ElementOffset(coordinate, strides_) * element_bytes_, &bits,
                element_bytes_);
  }

 private:
  uint32_t element_bytes_;
  std::vector<uint32_t> strides_;
  absl::Span<std::byte> bytes_;
};

bool IsNan(DataType type, uint64_t bits) {
  if (type == DataType::kFloat32) return (bits & 0x7FFF'FFFF) > 0x7F80'0000;
  if (type == DataType::kFloat16) return (bits & 0x7FFF) > 0x7C00;
  return false;
}

// An unsigned number that orders as the element does, -0 right below +0, NaNs somewhere outside.
uint64_t TotalOrderKey(DataType type, uint64_t bits) {
  if (!IsSigned(type)) return bits;
  if (!IsFloat(type)) return bits ^ (uint64_t{1} << 63);
  const uint64_t sign = type == DataType::kFloat32 ? 0x8000'0000 : 0x8000;
  const uint64_t all = 2 * sign - 1;
  return (bits & sign) != 0 ? bits ^ all : bits | sign;
}

// As TotalOrderKey, but -0 equals +0, and all NaNs are equal and above everything.
uint64_t OrderKey(DataType type, uint64_t bits) {
  if (IsNan(type, bits)) return std::numeric_limits<uint64_t>::max();
  const uint64_t sign = type == DataType::kFloat32 ? 0x8000'0000 : 0x8000;
  return TotalOrderKey(type, IsFloat(type) && bits == sign ? 0 : bits);
}

// The larger, the sooner arg-reductions pick the element.
uint64_t PickKey(DataType type, Extreme extreme, uint64_t bits) {
  const uint64_t key = OrderKey(type, bits);
  // Inverted number keys stay below a NaN's: no number's key is 0 where NaNs exist.
  return extreme == Extreme::kMax || IsNan(type, bits) ? key : ~key;
}

uint64_t CanonicalNan(DataType type) { return type == DataType::kFloat32 ? 0x7FC0'0000 : 0x7E00; }

double ToDouble(DataType type, uint64_t bits) {
  return type == DataType::kFloat32 ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                                    : HalfToFloat(static_cast<uint16_t>(bits));
}

uint64_t FromDouble(DataType type, double value) {
  if (std::isnan(value)) return CanonicalNan(type);
  const float rounded = static_cast<float>(value);
  return type == DataType::kFloat32 ? std::bit_cast<uint32_t>(rounded) : FloatToHalf(rounded);
}

// The coordinates that `axes` reduce: those of an output, and those inside one reduction.
struct ReductionShape {
  ReductionShape(const std::vector<uint32_t>& sizes, const std::vector<uint32_t>& axes,
                 std::stop_token abandoned_run = {})
      : output_sizes(sizes), inner_sizes(sizes.size(), 1), abandoned(std::move(abandoned_run)) {
    for (const uint32_t axis : axes) std::swap(output_sizes[axis], inner_sizes[axis]);
  }

  template <typename Visit>
  void ForEachOutput(Visit visit) const {
    ForEachCoordinate(output_sizes, abandoned, visit);
  }

  // Calls visit(input coordinate, position) for the elements reduced into `output`, positions
  // counted row-major over the reduced axes in dimension order.
  template <typename Visit>
  void ForEachReduced(const Coordinate& output, Visit visit) const {
    uint64_t position = 0;
    Coordinate coordinate(output.size());
    ForEachCoordinate(inner_sizes, abandoned, [&](const Coordinate& inner) {
      for (size_t i = 0; i < inner.size(); ++i) coordinate[i] = output[i] + inner[i];
      visit(std::as_const(coordinate), position++);
    });
  }

  std::vector<uint32_t> output_sizes;  // 1 along reduced axes
  std::vector<uint32_t> inner_sizes;   // 1 along the others
  std::stop_token abandoned;
};

uint64_t PickPosition(DataType type, const Reader& input, const ReductionShape& shape,
                      const Coordinate& output, Extreme extreme, AxisDirection direction) {
  uint64_t best_key = 0;
  uint64_t best = 0;
  shape.ForEachReduced(output, [&](const Coordinate& coordinate, uint64_t position) {
    const uint64_t key = PickKey(type, extreme, input.At(coordinate));
    const bool later_wins = direction == AxisDirection::kDecreasing && key == best_key;
    if (position == 0 || key > best_key || later_wins) {
      best_key = key;
      best = position;
    }
  });
  return best;
}

void ArgReduce(const TensorDesc& input_desc, const ReductionShape& shape, Extreme extreme,
               AxisDirection direction, absl::Span<const std::byte> input,
               const TensorDesc& output_desc, absl::Span<std::byte> output) {
  const Reader reader(input_desc, input);
  Writer writer(output_desc, output);
  shape.ForEachOutput([&](const Coordinate& coordinate) {
    writer.Store(coordinate,
                 PickPosition(input_desc.data_type, reader, shape, coordinate, extreme, direction));
  });
}

uint64_t MinMax(DataType type, const Reader& input, const ReductionShape& shape,
                const Coordinate& output, Extreme extreme) {
  bool any_nan = false;
  uint64_t best = 0;
  shape.ForEachReduced(output, [&](const Coordinate& coordinate, uint64_t position) {
    const uint64_t bits = input.At(coordinate);
    any_nan = any_nan || IsNan(type, bits);
    const uint64_t key = TotalOrderKey(type, bits);
    const uint64_t best_key = TotalOrderKey(type, best);
    if (position == 0 || (extreme == Extreme::kMax ? key > best_key : key < best_key)) best = bits;
  });
  return any_nan ? CanonicalNan(type) : best;
}

// Modulo 2^64, of which the store keeps the type's own bits.
uint64_t ReduceIntegers(ReduceFunction function, bool is_signed, const Reader& input,
                        const ReductionShape& shape, const Coordinate& output) {
  uint64_t result = function == ReduceFunction::kMultiply ? 1 : 0;
  shape.ForEachReduced(output, [&](const Coordinate& coordinate, uint64_t) {
    const uint64_t x = input.At(coordinate);
    const bool negative = is_signed && (x >> 63) != 0;
    switch (function) {
      case ReduceFunction::kL1:
        result += negative ? 0 - x : x;
        break;
      case ReduceFunction::kMultiply:
        result *= x;
        break;
      case ReduceFunction::kSumSquare:
        result += x * x;
        break;
      default:
        result += x;
        break;
    }
  });
  return result;
}

// Neumaier's compensated sum: what the additions lose is summed beside them.
class CompensatedSum {
 public:
  void Add(double x) {
    const double sum = sum_ + x;
    lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - sum) + x : (x - sum) + sum_;
    sum_ = sum;
  }
  // Next to inf and NaN, what was lost is meaningless.
  double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

// A product whose exponent cannot overflow on the way.
class WideProduct {
 public:
  void Multiply(double x) {
    mantissa_ *= x;
    if (mantissa_ == 0 || !std::isfinite(mantissa_)) return;
    int exponent = 0;
    mantissa_ = std::frexp(mantissa_, &exponent);
    exponent_ += exponent;
  }
  double value() const {
    // Beyond +-5000 every double has become inf or 0.
    return std::ldexp(mantissa_, static_cast<int>(std::clamp<int64_t>(exponent_, -5000, 5000)));
  }

 private:
  double mantissa_ = 1;
  int64_t exponent_ = 0;
};

double MaximumOf(DataType type, const Reader& input, const ReductionShape& shape,
                 const Coordinate& output) {
  return ToDouble(type, MinMax(type, input, shape, output, Extreme::kMax));
}

double FromSum(ReduceFunction function, const ExactReduction& exact) {
  switch (function) {
    case ReduceFunction::kAverage:
      return exact.sum / static_cast<double>(exact.count);
    case ReduceFunction::kL2:
      return std::sqrt(exact.sum);
    case ReduceFunction::kLogSum:
      return std::log(exact.sum);
    case ReduceFunction::kLogSumExp:
      // x - maximum is NaN or useless when the maximum is infinite or NaN: it is the answer itself.
      return std::isfinite(exact.maximum) ? exact.maximum + std::log(exact.sum) : exact.maximum;
    default:
      return exact.sum;
  }
}

ExactReduction ReduceFloats(ReduceFunction function, DataType type, const Reader& input,
                            const ReductionShape& shape, const Coordinate& output) {
  ExactReduction exact;
  if (function == ReduceFunction::kLogSumExp) {
    exact.maximum = MaximumOf(type, input, shape, output);
  }
  CompensatedSum sum;
  CompensatedSum magnitudes;
  WideProduct product;
  shape.ForEachReduced(output, [&](const Coordinate& coordinate, uint64_t) {
    double term = ToDouble(type, input.At(coordinate));
    if (function == ReduceFunction::kL1) term = std::abs(term);
    if (function == ReduceFunction::kL2 || function == ReduceFunction::kSumSquare) term *= term;
    if (function == ReduceFunction::kLogSumExp) term = std::exp(term - exact.maximum);
    if (function == ReduceFunction::kMultiply) product.Multiply(term);
    sum.Add(term);
    magnitudes.Add(std::abs(term));
    exact.largest_term = std::max(exact.largest_term, std::abs(term));
    ++exact.count;
  });
  exact.sum = function == ReduceFunction::kMultiply ? product.value() : sum.value();
  exact.sum_of_magnitudes = magnitudes.value();
  exact.value = FromSum(function, exact);
  return exact;
}

// The stored result: `exact` with the FLOAT32 accumulator's overflow.
double WithFloat32Range(ReduceFunction function, const ExactReduction& exact) {
  if (function != ReduceFunction::kL2) return exact.value;
  const bool overflows = std::isinf(static_cast<float>(exact.sum));
  return overflows ? std::numeric_limits<double>::infinity() : exact.value;
}

bool IsSelection(ReduceFunction function) {
  return function == ReduceFunction::kMin || function == ReduceFunction::kMax;
}

uint64_t ReduceOne(ReduceFunction function, DataType type, const Reader& input,
                   const ReductionShape& shape, const Coordinate& output) {
  if (IsSelection(function)) {
    return MinMax(type, input, shape, output,
                  function == ReduceFunction::kMin ? Extreme::kMin : Extreme::kMax);
  }
  if (!IsFloat(type)) return ReduceIntegers(function, IsSigned(type), input, shape, output);
  return FromDouble(type,
                    WithFloat32Range(function, ReduceFloats(function, type, input, shape, output)));
}

struct RunVisitor {
  absl::Span<const std::byte> input;
  const std::vector<absl::Span<std::byte>>& outputs;
  const std::stop_token& abandoned;

  void operator()(const ArgReduceDesc& desc) const {
    ArgReduce(desc.input, ReductionShape(desc.input.sizes, desc.axes, abandoned), desc.extreme,
              desc.axis_direction, input, *desc.output, outputs[0]);
  }

  void operator()(const ReduceDesc& desc) const {
    const ReductionShape shape(desc.input.sizes, desc.axes, abandoned);
    if (desc.function == ReduceFunction::kArgMin || desc.function == ReduceFunction::kArgMax) {
      ArgReduce(desc.input, shape,
                desc.function == ReduceFunction::kArgMin ? Extreme::kMin : Extreme::kMax,
                AxisDirection::kIncreasing, input, *desc.output, outputs[0]);
      return;
    }
    const Reader reader(desc.input, input);
    Writer writer(*desc.output, outputs[0]);
    shape.ForEachOutput([&](const Coordinate& coordinate) {
      writer.Store(coordinate,
                   ReduceOne(desc.function, desc.input.data_type, reader, shape, coordinate));
    });
  }

  void operator()(const TopKDesc& desc) const {
    const Reader reader(desc.input, input);
    const ReductionShape shape(desc.input.sizes, {desc.axis}, abandoned);
    Writer values(*desc.output_values, outputs[0]);
    Writer indices(*desc.output_indices, outputs[1]);
    struct Candidate {
      uint64_t key;
      uint64_t index;
      uint64_t bits;
    };
    std::vector<Candidate> candidates;
    shape.ForEachOutput([&](const Coordinate& sequence) {
      candidates.clear();
      shape.ForEachReduced(sequence, [&](const Coordinate& coordinate, uint64_t position) {
        const uint64_t bits = reader.At(coordinate);
        candidates.push_back({OrderKey(desc.input.data_type, bits), position, bits});
      });
      if (abandoned.stop_requested()) return;  // there may be fewer than k
      const bool decreasing = desc.axis_direction == AxisDirection::kDecreasing;
      std::sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
        if (a.key != b.key) return decreasing ? a.key > b.key : a.key < b.key;
        return a.index < b.index;
      });
      Coordinate place = sequence;
      for (uint32_t i = 0; i < desc.k; ++i) {
        place[desc.axis] = i;
        values.Store(place, candidates[i].bits);
        indices.Store(place, candidates[i].index);
      }
    });
  }

  void operator()(const HardmaxDesc& desc) const {
    const DataType type = desc.input.data_type;
    const Reader reader(desc.input, input);
    const ReductionShape shape(desc.input.sizes, desc.axes, abandoned);
    Writer writer(*desc.output, outputs[0]);
    shape.ForEachOutput([&](const Coordinate& output) {
      const uint64_t picked =
          PickPosition(type, reader, shape, output, Extreme::kMax, AxisDirection::kIncreasing);
      shape.ForEachReduced(output, [&](const Coordinate& coordinate, uint64_t position) {
        writer.Store(coordinate, FromDouble(type, position == picked ? 1 : 0));
      });
    });
  }
};

absl::Status CheckBytes(absl::string_view name, uint64_t size, const TensorDesc& desc) {
  if (size >= RequiredBytes(desc)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " has ", size, " bytes; its tensor needs ", RequiredBytes(desc), "."));
}

}  // namespace

absl::Status ReferenceRun(const OperatorDesc& validated, absl::Span<const std::byte> input,
                          const std::vector<absl::Span<std::byte>>& outputs,
                          const std::stop_token& abandoned) {
  const std::vector<TensorDesc> output_descs = OutputsOf(validated);
  if (outputs.size() != output_descs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(OperatorName(validated), " has ",
                                                   output_descs.size(), " outputs, but ",
                                                   outputs.size(), " are given."));
  }
  absl::Status status = CheckBytes("The input", input.size(), InputOf(validated));
  for (size_t i = 0; i < outputs.size(); ++i) {
    status.Update(CheckBytes(absl::StrCat("outputs[", i, "]"), outputs[i].size(), output_descs[i]));
  }
  if (status.ok() && !abandoned.stop_requested()) {
    std::visit(RunVisitor{input, outputs, abandoned}, validated);
  }
  if (abandoned.stop_requested()) status.Update(absl::CancelledError("The run was abandoned."));
  return status;
}

absl::StatusOr<std::vector<ExactReduction>> ReferenceReduceExact(
    const ReduceDesc& validated, absl::Span<const std::byte> input) {
  const ReduceFunction function = validated.function;
  const DataType type = validated.input.data_type;
  if (!IsFloat(type) || IsSelection(function) || function == ReduceFunction::kArgMin ||
      function == ReduceFunction::kArgMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("reduce ", ToString(function), " of ", ToString(type), " has no exact sum."));
  }
  absl::Status status = CheckBytes("The input", input.size(), validated.input);
  if (!status.ok()) return status;
  const Reader reader(validated.input, input);
  const ReductionShape shape(validated.input.sizes, validated.axes);
  std::vector<ExactReduction> results;
  shape.ForEachOutput([&](const Coordinate& output) {
    results.push_back(ReduceFloats(function, type, reader, shape, output));
  });
  return results;
}

}  // namespace opmill
