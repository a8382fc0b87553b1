#include "kernels/operators/cumulative_summation/cumulative_summation_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stop_token>

#include "kernels/reference/compensated_sum.h"
#include "kernels/reference/element_access.h"

namespace opmill {
namespace {

// Calls begin_sequence(), then visit(coordinate) for the elements of each sequence, in the order of
// addition.
template <typename Begin, typename Visit>
void ForEachStep(const CumulativeSummationDesc& desc, const std::stop_token& abandoned, Begin begin,
                 Visit visit) {
  const ReductionShape shape(desc.input.sizes, {desc.axis}, abandoned);
  const uint32_t length = desc.input.sizes[desc.axis];
  const bool increasing = desc.axis_direction == AxisDirection::kIncreasing;
  shape.ForEachOutput([&](const Coordinate& sequence) {
    begin();
    Coordinate coordinate = sequence;
    for (uint32_t i = 0; i < length && !abandoned.stop_requested(); ++i) {
      coordinate[desc.axis] = increasing ? i : length - 1 - i;
      visit(coordinate);
    }
  });
}

// Modulo 2^64; storing keeps the low bits of the type.
void SumIntegers(const CumulativeSummationDesc& desc, const ReferenceCall& call) {
  const Reader reader(desc.input, call.inputs[0]);
  Writer writer(*desc.output, call.outputs[0]);
  uint64_t sum = 0;
  ForEachStep(
      desc, call.abandoned, [&] { sum = 0; },
      [&](const Coordinate& coordinate) {
        const uint64_t after = sum + reader.At(coordinate);
        writer.Store(coordinate, desc.has_exclusive_sum ? sum : after);
        sum = after;
      });
}

// Calls visit(coordinate, result).
template <typename Visit>
void ForEachFloatSum(const CumulativeSummationDesc& desc, absl::Span<const std::byte> input,
                     const std::stop_token& abandoned, Visit visit) {
  const Reader reader(desc.input, input);
  CompensatedSum sum;
  CompensatedSum magnitudes;
  ExactReduction exact;
  const auto begin = [&] {
    sum = CompensatedSum();
    magnitudes = CompensatedSum();
    exact = ExactReduction();
  };
  ForEachStep(desc, abandoned, begin, [&](const Coordinate& coordinate) {
    const auto tell = [&] {
      exact.sum = exact.value = sum.value();
      exact.sum_of_magnitudes = magnitudes.value();
      visit(coordinate, exact);
    };
    if (desc.has_exclusive_sum) tell();
    const double term = ToDouble(desc.input.data_type, reader.At(coordinate));
    sum.Add(term);
    magnitudes.Add(std::abs(term));
    exact.largest_term = std::max(exact.largest_term, std::abs(term));
    ++exact.count;
    if (!desc.has_exclusive_sum) tell();
  });
}

}  // namespace

void ReferenceCumulativeSummation(const ReferenceCall& call) {
  const CumulativeSummationDesc desc = CumulativeSummationDesc::From(call.desc);
  if (!IsFloat(desc.input.data_type)) {
    SumIntegers(desc, call);
    return;
  }
  Writer writer(*desc.output, call.outputs[0]);
  ForEachFloatSum(desc, call.inputs[0], call.abandoned,
                  [&](const Coordinate& coordinate, const ExactReduction& exact) {
                    writer.Store(coordinate, FromDouble(desc.input.data_type, exact.value));
                  });
}

std::vector<ExactReduction> ExactCumulativeSums(const CumulativeSummationDesc& validated,
                                                absl::Span<const std::byte> input) {
  const std::vector<uint32_t> strides = PackedStrides(validated.input.sizes);
  std::vector<ExactReduction> results(ElementCount(validated.input));
  ForEachFloatSum(validated, input, {},
                  [&](const Coordinate& coordinate, const ExactReduction& exact) {
                    results[ElementOffset(coordinate, strides)] = exact;
                  });
  return results;
}

}  // namespace opmill
