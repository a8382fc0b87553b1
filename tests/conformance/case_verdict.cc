#include "tests/conformance/case_verdict.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/base/half.h"
#include "kernels/operators/cumulative_summation/cumulative_summation_reference.h"
#include "kernels/operators/elementwise/element_wise.h"
#include "kernels/operators/operator_reference.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/reduction/reduction_reference.h"
#include "tests/conformance/element_wise_verdict.h"
#include "tests/support/tensors.h"

namespace opmill {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Accepted kOnlyNan = {.low = 1, .high = 0, .nan = true};

// The eps of docs/operators.md, 2^-23: twice the rounding error of one FLOAT32 addition.
constexpr double kEpsilon = FLT_EPSILON;

// The value as a device's FLOAT32 accumulator can represent it.
double InFloat32(double x) { return static_cast<float>(x); }

Accepted Exactly(double value) { return {.low = value, .high = value}; }

Accepted Widened(double low, double high, double by) {
  return {.low = low - by, .high = high + by};
}

// The bound on the error of a sum of these terms; 0 if every partial sum is exact.
double SumBound(const ExactReduction& exact, const TermFacts& facts) {
  const double magnitudes = exact.sum_of_magnitudes;
  if (magnitudes == 0 || (facts.integers && magnitudes <= 0x1p24)) return 0;
  const double count = static_cast<double>(exact.count);
  // Each term, and the result, may be a denormal that is flushed.
  return 2 * kEpsilon * (std::log2(count) + 4) * magnitudes + (count + 1) * double{FLT_MIN};
}

// True if partial sums can overflow although the sum does not, or to the other infinity.
bool MayOverflowOnTheWay(const ExactReduction& exact, const TermFacts& facts) {
  const bool one_sign =
      std::abs(exact.sum) >= facts.finite_magnitudes * (1 - 1e-9) && std::isfinite(exact.sum);
  return !one_sign && facts.finite_magnitudes * (1 + 1e-5) >= double{FLT_MAX};
}

// For SUM, L1, SUM_SQUARE, and for the sums within the other functions.
Accepted AcceptedSums(const ExactReduction& exact, const TermFacts& facts) {
  if (std::isnan(exact.sum)) return kOnlyNan;
  Accepted accepted = Exactly(exact.sum);
  if (std::isfinite(exact.sum)) {
    const double bound = SumBound(exact, facts);
    accepted = Widened(exact.sum, exact.sum, bound);
  }
  return accepted;
}

Accepted AcceptedAverages(const ExactReduction& exact, const TermFacts& facts) {
  const Accepted sums = AcceptedSums(exact, facts);
  if (!std::isfinite(exact.sum)) return sums;
  const double count = static_cast<double>(exact.count);
  const double tiny = exact.sum_of_magnitudes == 0 ? 0 : double{FLT_MIN};
  return Widened(sums.low / count, sums.high / count, 2 * kEpsilon * std::abs(exact.value) + tiny);
}

Accepted AcceptedRoots(const ExactReduction& exact, const TermFacts& facts) {
  const Accepted sums = AcceptedSums(exact, facts);
  if (!std::isfinite(exact.sum)) return sums;
  const double low = std::sqrt(InFloat32(std::max(sums.low, 0.0)));
  const double high = std::sqrt(InFloat32(sums.high));
  return {.low = low * (1 - 4 * kEpsilon), .high = high * (1 + 4 * kEpsilon)};
}

Accepted AcceptedLogarithms(const ExactReduction& exact, const TermFacts& facts) {
  const Accepted sums = AcceptedSums(exact, facts);
  if (std::isnan(exact.sum) || sums.high < 0) return kOnlyNan;
  const auto log = [](double sum) { return std::log(InFloat32(sum)); };
  // If the interval includes negative numbers, their NaN is accepted.
  const double low = sums.low < double{FLT_MIN} ? -kInfinity : log(sums.low);
  const double high = log(sums.high);
  const auto slack = [](double x) {
    return std::isfinite(x) ? 4 * kEpsilon * std::abs(x) + double{FLT_MIN} : 0;
  };
  return {.low = exact.sum_of_magnitudes == 0 ? -kInfinity : low - slack(low),
          .high = high + slack(high),
          .nan = sums.low < 0};
}

Accepted AcceptedLogSumExps(const ExactReduction& exact, const TermFacts& facts) {
  if (std::isnan(exact.maximum)) return kOnlyNan;
  if (std::isinf(exact.maximum)) return Exactly(exact.maximum);
  const double bound = SumBound(exact, facts);
  const double low = std::log(exact.sum - bound);
  const double high = std::log(exact.sum + bound);
  const double slack = 4 * kEpsilon * std::max(std::abs(low), std::abs(high)) +
                       kEpsilon * std::abs(exact.value) + double{FLT_MIN};
  return Widened(exact.maximum + low, exact.maximum + high, slack);
}

Accepted AcceptedProducts(const ExactReduction& exact, const TermFacts& facts) {
  if (std::isnan(exact.value)) return kOnlyNan;
  if (facts.logarithms > 125) {
    // In some order, the product exceeds the range of numbers: only the sign is certain.
    const bool negative = std::signbit(exact.value);
    return {.low = negative ? -kInfinity : 0, .high = negative ? 0 : kInfinity, .nan = true};
  }
  if (std::isinf(exact.value) || exact.value == 0) return Exactly(exact.value);
  const double bound = static_cast<double>(exact.count) * kEpsilon * std::abs(exact.value);
  return Widened(exact.value, exact.value, bound);
}

// `input` with every element changed.
template <typename Change>
std::vector<std::byte> Changed(DataType type, absl::Span<const std::byte> input, Change change) {
  std::vector<std::byte> bytes(input.begin(), input.end());
  const uint32_t element_bytes = ElementBytes(type);
  for (size_t at = 0; at + element_bytes <= bytes.size(); at += element_bytes) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, element_bytes);
    bits = BitsOf(type, change(NumberOf(type, bits)));
    std::memcpy(bytes.data() + at, &bits, element_bytes);
  }
  return bytes;
}

// The sum of the magnitudes of the changed elements, for each result.
template <typename Change>
std::vector<double> SumsOf(const ReduceDesc& desc, absl::Span<const std::byte> input,
                           Change change) {
  ReduceDesc sum = desc;
  sum.function = ReduceFunction::kL1;
  const std::vector<std::byte> changed = Changed(desc.input.data_type, input, change);
  std::vector<double> sums;
  const auto reduced = ReferenceReduceExact(sum, changed);
  for (const ExactReduction& exact : *reduced) sums.push_back(exact.sum);
  return sums;
}

std::vector<TermFacts> FactsOf(const ReduceDesc& desc, ValuePattern values,
                               absl::Span<const std::byte> input,
                               const std::vector<ExactReduction>& exact) {
  const bool integers = HoldsIntegers(values) && desc.function != ReduceFunction::kLogSumExp;
  std::vector<TermFacts> facts(exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    facts[i] = {.integers = integers, .finite_magnitudes = exact[i].sum_of_magnitudes};
  }
  if (desc.function == ReduceFunction::kMultiply) {
    const std::vector<double> logarithms = SumsOf(desc, input, [](double x) {
      return std::isfinite(x) && x != 0 ? std::log2(std::abs(x)) : 0.0;
    });
    for (size_t i = 0; i < facts.size(); ++i) facts[i].logarithms = logarithms[i];
    return facts;
  }
  const bool any_infinite = std::any_of(exact.begin(), exact.end(), [](const ExactReduction& e) {
    return !std::isfinite(e.sum_of_magnitudes);
  });
  if (!any_infinite) return facts;
  // Squares and powers have one sign, so this matters only for sums of the elements themselves.
  const std::vector<double> finite =
      SumsOf(desc, input, [](double x) { return std::isfinite(x) ? x : 0.0; });
  for (size_t i = 0; i < facts.size(); ++i) {
    if (!std::isfinite(exact[i].sum_of_magnitudes)) facts[i].finite_magnitudes = finite[i];
  }
  return facts;
}

// The byte offsets of a tensor's elements, in row-major order.
std::vector<uint64_t> PlacesOf(const TensorDesc& desc) {
  const std::vector<uint32_t> strides = EffectiveStrides(desc);
  std::vector<uint64_t> places = {0};
  for (size_t axis = 0; axis < desc.sizes.size(); ++axis) {
    std::vector<uint64_t> deeper;
    deeper.reserve(places.size() * desc.sizes[axis]);
    for (const uint64_t place : places) {
      for (uint64_t i = 0; i < desc.sizes[axis]; ++i) {
        deeper.push_back(place + i * strides[axis] * ElementBytes(desc.data_type));
      }
    }
    places = std::move(deeper);
  }
  return places;
}

double Stored(DataType type, double value) {
  const float rounded = static_cast<float>(value);
  return type == DataType::kFloat32 ? rounded : HalfToFloat(FloatToHalf(rounded));
}

bool Accepts(const Accepted& accepted, DataType type, double got) {
  if (std::isnan(got)) return accepted.nan;
  if (std::isinf(got) && accepted.infinity) return true;
  return accepted.low <= accepted.high && Stored(type, accepted.low) <= got &&
         got <= Stored(type, accepted.high);
}

// The same for the sums of cumulative_summation.
std::vector<TermFacts> FactsOf(const CumulativeSummationDesc& desc, ValuePattern values,
                               absl::Span<const std::byte> input,
                               const std::vector<ExactReduction>& exact) {
  const std::vector<std::byte> finite =
      Changed(desc.input.data_type, input, [](double x) { return std::isfinite(x) ? x : 0.0; });
  const std::vector<ExactReduction> finite_sums = ExactCumulativeSums(desc, finite);
  std::vector<TermFacts> facts(exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    facts[i] = {.integers = HoldsIntegers(values),
                .finite_magnitudes = finite_sums[i].sum_of_magnitudes};
  }
  return facts;
}

// `exact` and `facts` in row-major order of the output.
std::string FindInexactMistake(ReduceFunction function, const TensorDesc& output_desc,
                               const std::vector<ExactReduction>& exact,
                               const std::vector<TermFacts>& facts,
                               const std::vector<std::byte>& output) {
  const DataType type = output_desc.data_type;
  const std::vector<uint64_t> places = PlacesOf(output_desc);
  std::vector<std::byte> gaps = output;
  for (size_t i = 0; i < places.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, output.data() + places[i], ElementBytes(type));
    std::memset(gaps.data() + places[i], 0, ElementBytes(type));
    const double got = NumberOf(type, bits);
    const Accepted accepted = AcceptedResults(function, exact[i], facts[i]);
    if (Accepts(accepted, type, got)) continue;
    return absl::StrFormat(
        "result %d is %.9g (0x%x), exactly it is %.9g; accepted is [%.9g, %.9g]%s%s; %d terms of "
        "magnitude %.9g",
        i, got, bits, exact[i].value, Stored(type, accepted.low), Stored(type, accepted.high),
        accepted.nan ? " or NaN" : "", accepted.infinity ? " or an infinity" : "", exact[i].count,
        exact[i].sum_of_magnitudes);
  }
  const auto dirty =
      std::find_if(gaps.begin(), gaps.end(), [](std::byte b) { return b != std::byte{0}; });
  if (dirty == gaps.end()) return "";
  return absl::StrCat("byte ", dirty - gaps.begin(), " between elements is not zero");
}

std::string FindExactMistake(const OperatorDesc& desc, const Inputs& inputs,
                             const Outputs& outputs) {
  const std::vector<absl::Span<const std::byte>> input_spans(inputs.begin(), inputs.end());
  Outputs expected;
  std::vector<absl::Span<std::byte>> spans;
  for (const std::vector<std::byte>& output : outputs) expected.emplace_back(output.size());
  for (std::vector<std::byte>& output : expected) spans.push_back(absl::MakeSpan(output));
  const absl::Status status = ReferenceRun(desc, input_spans, spans);
  if (!status.ok()) return std::string(status.message());
  const std::vector<TensorDesc> descs = OutputsOf(desc);
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o] == expected[o]) continue;
    const std::vector<uint64_t> places = PlacesOf(descs[o]);
    const uint32_t element_bytes = ElementBytes(descs[o].data_type);
    for (size_t i = 0; i < places.size(); ++i) {
      uint64_t got = 0;
      uint64_t want = 0;
      std::memcpy(&got, outputs[o].data() + places[i], element_bytes);
      std::memcpy(&want, expected[o].data() + places[i], element_bytes);
      if (got == want) continue;
      return absl::StrFormat("element %d of %d of output %d is 0x%x instead of 0x%x", i,
                             places.size(), o, got, want);
    }
    return absl::StrCat("output ", o, " is not zero between elements");
  }
  return "";
}

}  // namespace

Accepted AcceptedResults(ReduceFunction function, const ExactReduction& exact,
                         const TermFacts& facts) {
  Accepted accepted;
  switch (function) {
    case ReduceFunction::kAverage:
      return AcceptedAverages(exact, facts);
    case ReduceFunction::kL2:
      return AcceptedRoots(exact, facts);
    case ReduceFunction::kLogSumExp:
      return AcceptedLogSumExps(exact, facts);
    case ReduceFunction::kMultiply:
      return AcceptedProducts(exact, facts);
    case ReduceFunction::kLogSum:
      accepted = AcceptedLogarithms(exact, facts);
      break;
    case ReduceFunction::kSum:
      accepted = AcceptedSums(exact, facts);
      break;
    default:
      return AcceptedSums(exact, facts);
  }
  if (!std::isnan(exact.sum) && MayOverflowOnTheWay(exact, facts)) {
    accepted.nan = true;
    accepted.infinity = true;
  }
  return accepted;
}

std::string FindMistake(const ConformanceCase& c, const Inputs& inputs, const Outputs& outputs) {
  if (ElementWiseOpOf(*c.desc.schema).has_value()) {
    return FindElementWiseMistake(c.desc, inputs, outputs[0]);
  }
  if (!IsInexact(c.desc)) return FindExactMistake(c.desc, inputs, outputs);
  const TensorDesc& output = *c.desc.outputs[0];
  if (c.desc.schema == &kCumulativeSummationSchema) {
    const auto desc = CumulativeSummationDesc::From(c.desc);
    const std::vector<ExactReduction> exact = ExactCumulativeSums(desc, inputs[0]);
    return FindInexactMistake(ReduceFunction::kSum, output, exact,
                              FactsOf(desc, c.values, inputs[0], exact), outputs[0]);
  }
  const ReduceDesc desc = ReduceDesc::From(c.desc);
  const auto exact = ReferenceReduceExact(desc, inputs[0]);
  if (!exact.ok()) return std::string(exact.status().message());
  return FindInexactMistake(desc.function, output, *exact,
                            FactsOf(desc, c.values, inputs[0], *exact), outputs[0]);
}

}  // namespace opmill
