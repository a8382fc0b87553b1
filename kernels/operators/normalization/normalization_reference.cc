#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/operators/normalization/normalization_desc.h"
#include "kernels/reference/compensated_sum.h"
#include "kernels/reference/element_access.h"

namespace opmill {
namespace {

// An input whose sizes are those of the first one or 1.
class BroadcastReader {
 public:
  BroadcastReader(const ReferenceCall& call, size_t index)
      : desc_(call.desc.inputs[index]), reader_(desc_, call.inputs[index]) {}

  double At(Coordinate at) const {
    for (size_t d = 0; d < at.size(); ++d) at[d] = std::min(at[d], desc_.sizes[d] - 1);
    return ToDouble(desc_.data_type, reader_.At(at));
  }

 private:
  const TensorDesc& desc_;
  const Reader reader_;
};

void MeanVariance(const ReferenceCall& call, Writer& writer) {
  const OperatorDesc& desc = call.desc;
  const BroadcastReader input(call, 0);
  std::vector<BroadcastReader> others;
  for (size_t i = 1; i < desc.inputs.size(); ++i) others.emplace_back(call, i);
  const ReductionShape shape(desc.inputs[0].sizes, desc.list("axes"), call.abandoned);
  const auto mean_of = [&](const Coordinate& row, const auto& function) {
    CompensatedSum sum;
    double count = 0;
    shape.ForEachReduced(row, [&](const Coordinate& at, uint64_t) {
      sum.Add(function(input.At(at)));
      ++count;
    });
    return sum.value() / count;
  };
  shape.ForEachOutput([&](const Coordinate& row) {
    const double mean = desc.number("use_mean") != 0 ? mean_of(row, [](double x) { return x; }) : 0;
    double deviation = 1;
    if (desc.number("use_variance") != 0) {
      const double variance = mean_of(row, [mean](double x) { return (x - mean) * (x - mean); });
      deviation = std::sqrt(variance + double{desc.value<float>("epsilon")});
    }
    shape.ForEachReduced(row, [&](const Coordinate& at, uint64_t) {
      double result = (input.At(at) - mean) / deviation;
      if (!others.empty()) result *= others[0].At(at);
      if (others.size() > 1) result += others[1].At(at);
      writer.Store(at, FromDouble(desc.outputs[0]->data_type, result));
    });
  });
}

void Batch(const ReferenceCall& call, Writer& writer) {
  const BroadcastReader input(call, 0);
  const BroadcastReader mean(call, 1);
  const BroadcastReader variance(call, 2);
  const BroadcastReader scale(call, 3);
  const BroadcastReader bias(call, 4);
  const double epsilon = call.desc.value<float>("epsilon");
  ForEachCoordinate(call.desc.inputs[0].sizes, call.abandoned, [&](const Coordinate& at) {
    const double normal = (input.At(at) - mean.At(at)) / std::sqrt(variance.At(at) + epsilon);
    writer.Store(at,
                 FromDouble(call.desc.outputs[0]->data_type, normal * scale.At(at) + bias.At(at)));
  });
}

void LocalResponse(const ReferenceCall& call, Writer& writer) {
  const TensorDesc& desc = call.desc.inputs[0];
  const BroadcastReader input(call, 0);
  const uint32_t local_size = call.desc.number("local_size");
  const bool across = call.desc.number("cross_channel") != 0;
  std::vector<uint32_t> windows(4, 1);
  std::fill_n(windows.begin() + (across ? 1 : 2), across ? 1 : 2, local_size);
  ForEachCoordinate(desc.sizes, call.abandoned, [&](const Coordinate& at) {
    CompensatedSum sum;
    ForEachCoordinate(windows, call.abandoned, [&](const Coordinate& k) {
      Coordinate other = at;
      for (size_t d = 0; d < other.size(); ++d) {
        const uint32_t before = (windows[d] - 1) / 2;
        other[d] += k[d] - before;  // wraps below zero
        if (other[d] >= desc.sizes[d]) return;
      }
      sum.Add(input.At(other) * input.At(other));
    });
    const double base = double{call.desc.value<float>("bias")} +
                        double{call.desc.value<float>("alpha")} / local_size * sum.value();
    writer.Store(at, FromDouble(desc.data_type,
                                input.At(at) / std::pow(base, call.desc.value<float>("beta"))));
  });
}

}  // namespace

void ReferenceNormalization(const ReferenceCall& call) {
  Writer writer(*call.desc.outputs[0], call.outputs[0]);
  if (call.desc.schema == &kMeanVarianceNormalizationSchema) return MeanVariance(call, writer);
  if (call.desc.schema == &kBatchNormalizationSchema) return Batch(call, writer);
  LocalResponse(call, writer);
}

}  // namespace opmill
