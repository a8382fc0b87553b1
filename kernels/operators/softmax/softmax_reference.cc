#include <cmath>

#include "kernels/operators/softmax/softmax_desc.h"
#include "kernels/reference/compensated_sum.h"
#include "kernels/reference/element_access.h"

namespace opmill {

void ReferenceSoftmax(const ReferenceCall& call) {
  const TensorDesc& desc = call.desc.inputs[0];
  const Reader reader(desc, call.inputs[0]);
  Writer writer(*call.desc.outputs[0], call.outputs[0]);
  const ReductionShape shape(desc.sizes, call.desc.list("axes"), call.abandoned);
  const auto element = [&](const Coordinate& at) {
    return ToDouble(desc.data_type, reader.At(at));
  };
  shape.ForEachOutput([&](const Coordinate& row) {
    double maximum = -INFINITY;
    shape.ForEachReduced(row, [&](const Coordinate& at, uint64_t) {
      const double x = element(at);
      if (std::isnan(x) || x > maximum) maximum = x;
    });
    CompensatedSum sum;
    shape.ForEachReduced(
        row, [&](const Coordinate& at, uint64_t) { sum.Add(std::exp(element(at) - maximum)); });
    shape.ForEachReduced(row, [&](const Coordinate& at, uint64_t) {
      const double below = element(at) - maximum;
      const double result = call.desc.schema == &kLogSoftmaxSchema ? below - std::log(sum.value())
                                                                   : std::exp(below) / sum.value();
      writer.Store(at, FromDouble(desc.data_type, result));
    });
  });
}

}  // namespace opmill
