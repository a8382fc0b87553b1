#include "kernels/operators/reduction/reduction_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/operators/reduction/arg_reference.h"
#include "kernels/reference/compensated_sum.h"

namespace opmill {
namespace {

void ArgReduce(const ReferenceCall& call, const ArgReduceDesc& desc) {
  const Reader reader(desc.input, call.inputs[0]);
  const ReductionShape shape(desc.input.sizes, desc.axes, call.abandoned);
  Writer writer(*desc.output, call.outputs[0]);
  shape.ForEachOutput([&](const Coordinate& coordinate) {
    writer.Store(coordinate, PickPosition(desc.input.data_type, reader, shape, coordinate,
                                          desc.extreme, desc.axis_direction));
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

// Modulo 2^64; storing keeps the low bits of the type.
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

// A product whose intermediate exponents cannot overflow.
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
    // Beyond +-5000 every double is inf or 0.
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
      // If the maximum is infinite or NaN, it is the result; x - maximum would be NaN.
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

// The result to store: `exact`, with the overflow of a FLOAT32 accumulator.
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

}  // namespace

void ReferenceArg(const ReferenceCall& call) { ArgReduce(call, ArgReduceDesc::From(call.desc)); }

void ReferenceReduce(const ReferenceCall& call) {
  const ReduceDesc desc = ReduceDesc::From(call.desc);
  if (GivesIndices(desc.function)) {
    ArgReduce(call, desc.AsArgReduce());
    return;
  }
  const Reader reader(desc.input, call.inputs[0]);
  const ReductionShape shape(desc.input.sizes, desc.axes, call.abandoned);
  Writer writer(*desc.output, call.outputs[0]);
  shape.ForEachOutput([&](const Coordinate& coordinate) {
    writer.Store(coordinate,
                 ReduceOne(desc.function, desc.input.data_type, reader, shape, coordinate));
  });
}

absl::StatusOr<std::vector<ExactReduction>> ReferenceReduceExact(
    const ReduceDesc& validated, absl::Span<const std::byte> input) {
  const ReduceFunction function = validated.function;
  const DataType type = validated.input.data_type;
  if (!IsFloat(type) || IsSelection(function) || GivesIndices(function)) {
    return absl::InvalidArgumentError(
        absl::StrCat("reduce ", ToString(function), " of ", ToString(type), " has no exact sum."));
  }
  if (input.size() < RequiredBytes(validated.input)) {
    return absl::InvalidArgumentError(absl::StrCat("The input has ", input.size(),
                                                   " bytes; its tensor needs ",
                                                   RequiredBytes(validated.input), "."));
  }
  const Reader reader(validated.input, input);
  const ReductionShape shape(validated.input.sizes, validated.axes);
  std::vector<ExactReduction> results;
  shape.ForEachOutput([&](const Coordinate& output) {
    results.push_back(ReduceFloats(function, type, reader, shape, output));
  });
  return results;
}

}  // namespace opmill
