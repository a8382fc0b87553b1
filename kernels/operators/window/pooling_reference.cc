#include <cmath>
#include <limits>
#include <optional>

#include "kernels/operators/window/pooling_desc.h"
#include "kernels/reference/compensated_sum.h"
#include "kernels/reference/element_access.h"

namespace opmill {
namespace {

// Calls visit(coordinate) for the elements of a window that are in the input, in row-major order.
template <typename Visit>
void ForEachInWindow(const PoolingDesc& desc, const Coordinate& result,
                     const std::stop_token& abandoned, Visit visit) {
  WindowDim::Elements elements[PoolingDesc::kRank];
  std::vector<uint32_t> counts(PoolingDesc::kRank);
  for (size_t d = 0; d < counts.size(); ++d) {
    elements[d] = desc.windows[d].ElementsOf(result[d], desc.input.sizes[d]);
    if (elements[d].count == 0) return;
    counts[d] = static_cast<uint32_t>(elements[d].count);
  }
  Coordinate at(PoolingDesc::kRank);
  ForEachCoordinate(counts, abandoned, [&](const Coordinate& k) {
    for (size_t d = 0; d < at.size(); ++d) {
      at[d] = static_cast<uint32_t>(elements[d].first + uint64_t{k[d]} * desc.windows[d].dilation);
    }
    visit(std::as_const(at));
  });
}

struct Largest {
  uint64_t bits = 0;
  std::optional<Coordinate> at;
};

// The first of the largest elements. NaN is above all numbers, -0 below +0.
Largest LargestOf(const PoolingDesc& desc, const Reader& input, const Coordinate& result,
                  const std::stop_token& abandoned) {
  const DataType type = desc.input.data_type;
  Largest largest = {.bits = LowestBits(type)};
  uint64_t largest_key = 0;
  ForEachInWindow(desc, result, abandoned, [&](const Coordinate& at) {
    const uint64_t bits = input.At(at);
    const uint64_t key =
        IsNan(type, bits) ? std::numeric_limits<uint64_t>::max() : TotalOrderKey(type, bits);
    if (largest.at.has_value() && key <= largest_key) return;
    largest = {.bits = IsNan(type, bits) ? CanonicalNan(type) : bits, .at = at};
    largest_key = key;
  });
  return largest;
}

double MeanOf(const PoolingDesc& desc, const Reader& input, const Coordinate& result,
              const std::stop_token& abandoned) {
  CompensatedSum sum;
  double count = 0;
  ForEachInWindow(desc, result, abandoned, [&](const Coordinate& at) {
    sum.Add(ToDouble(desc.input.data_type, input.At(at)));
    ++count;
  });
  if (desc.include_padding) {
    count = 1;
    for (const WindowDim& dim : desc.windows) count *= dim.window;
  }
  return count == 0 ? 0 : sum.value() / count;
}

}  // namespace

void ReferencePooling(const ReferenceCall& call) {
  const PoolingDesc desc = PoolingDesc::From(call.desc);
  const Reader input(desc.input, call.inputs[0]);
  Writer output(desc.output, call.outputs[0]);
  std::optional<Writer> indices;
  if (desc.indices.has_value()) indices.emplace(*desc.indices, call.outputs[1]);
  const std::vector<uint32_t> positions = PackedStrides(desc.input.sizes);
  ForEachCoordinate(desc.output.sizes, call.abandoned, [&](const Coordinate& result) {
    if (desc.function == PoolingFunction::kAverage) {
      output.Store(result,
                   FromDouble(desc.input.data_type, MeanOf(desc, input, result, call.abandoned)));
      return;
    }
    const Largest largest = LargestOf(desc, input, result, call.abandoned);
    output.Store(result, largest.bits);
    if (!indices.has_value()) return;
    indices->Store(result, largest.at.has_value() ? ElementOffset(*largest.at, positions)
                                                  : uint64_t{kNoPoolingIndex});
  });
}

void ReferenceLpPooling(const ReferenceCall& call) {
  const PoolingDesc desc = PoolingDesc::From(call.desc);
  const Reader input(desc.input, call.inputs[0]);
  Writer output(desc.output, call.outputs[0]);
  const double p = call.desc.number("p");
  ForEachCoordinate(desc.output.sizes, call.abandoned, [&](const Coordinate& result) {
    CompensatedSum sum;
    ForEachInWindow(desc, result, call.abandoned, [&](const Coordinate& at) {
      sum.Add(std::pow(std::abs(ToDouble(desc.input.data_type, input.At(at))), p));
    });
    output.Store(result, FromDouble(desc.input.data_type, std::pow(sum.value(), 1 / p)));
  });
}

}  // namespace opmill
