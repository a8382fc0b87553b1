// element_wise_add: one dispatch per slice. Lanes add vectors if rows allow it, otherwise single
// elements.
#include <algorithm>
#include <utility>

#include "kernels/operators/elementwise/element_wise_add_desc.h"
#include "kernels/operators/elementwise/elementwise_space.h"
#include "kernels/plan/plan_builder.h"
#include "shaders/elementwise_constants.h"

namespace opmill {
namespace {

KernelPermutation AddKernel(const ElementwiseSpace& space, DataType type, bool in_vectors,
                            uint32_t threads) {
  KernelPermutation kernel = {.shader = "element_wise_add",
                              .entry = in_vectors ? "AddVectors" : "AddElements",
                              .macros = {{"DATA_TYPE", static_cast<uint32_t>(SignlessType(type))},
                                         {"THREADS", threads},
                                         {"WIDTH", in_vectors ? 4u : 1u}}};
  if (in_vectors) {
    kernel.macros.push_back({"SPREADS_A", space.row().strides[kTensorA] == 0 ? 1u : 0u});
    kernel.macros.push_back({"SPREADS_B", space.row().strides[kTensorB] == 0 ? 1u : 0u});
  }
  return kernel;
}

PerTensor<uint64_t> LimitsOf(bool in_vectors, uint64_t vector, const PlanOptions& options) {
  const uint64_t of_vectors = std::min((options.max_view_elements - 1) * vector, uint64_t{1} << 31);
  const uint64_t of_elements = options.max_view_elements - vector;
  return {of_vectors, of_vectors, in_vectors ? of_vectors : of_elements};
}

// With `in_vectors`, a step along a row is a vector.
void SetWalk(ElementwiseConstants& constants, const ElementwiseSpace& space, uint64_t row_step) {
  constants.rank = static_cast<uint32_t>(space.dims.size());
  for (size_t d = 0; d < space.dims.size(); ++d) {
    const ElementwiseSpace::Dim& dim = space.dims[d];
    const uint64_t step = d + 1 == space.dims.size() ? row_step : 1;
    constants.dims[d] = {.size = static_cast<uint32_t>(CeilDiv(dim.size, step)),
                         .a_stride = static_cast<uint32_t>(dim.strides[kTensorA] * step),
                         .b_stride = static_cast<uint32_t>(dim.strides[kTensorB] * step),
                         .output_stride = static_cast<uint32_t>(dim.strides[kTensorOutput] * step)};
  }
  constants.row_length = static_cast<uint32_t>(space.row().size);
}

}  // namespace

absl::Status PlanElementWiseAdd(PlanBuilder& builder, const OperatorDesc& operator_desc) {
  const ElementWiseAddDesc desc = ElementWiseAddDesc::From(operator_desc);
  const DataType type = desc.a.data_type;
  const PlanOptions& options = builder.options();
  const uint64_t vector = kVectorBytes / ElementBytes(type);
  FillGaps(builder, BufferRole::Output(), *desc.output);
  const ElementwiseSpace space = MakeElementwiseSpace(desc.a, desc.b, *desc.output);
  const bool in_vectors = WalksVectors(space, vector);
  const uint64_t row_step = in_vectors ? vector : 1;
  const uint32_t kernel = builder.Kernel(AddKernel(space, type, in_vectors, options.threads));
  for (const ElementwiseSpace& slice :
       Slice(space, LimitsOf(in_vectors, vector, options), row_step)) {
    if (builder.full()) return absl::OkStatus();
    const auto read = [&](size_t tensor, BufferRole role) {
      return ReadElements(type, slice.bases[tensor], slice.Span(tensor), role);
    };
    const PlacedView a = read(kTensorA, BufferRole::Input(0));
    const PlacedView b = read(kTensorB, BufferRole::Input(1));
    const PlacedView output =
        in_vectors ? read(kTensorOutput, BufferRole::Output())
                   : WriteElements(BufferRole::Output(), type, slice.bases[kTensorOutput],
                                   slice.Span(kTensorOutput));
    Dispatch dispatch;
    dispatch.kernel = kernel;
    dispatch.reads = {a.view, b.view};
    dispatch.writes[0] = output.view;
    ElementwiseConstants constants = {};
    constants.a_base = a.base;
    constants.b_base = b.base;
    constants.output_base = output.base;
    SetWalk(constants, slice, row_step);
    dispatch.constants = constants;
    const uint64_t units =
        slice.ElementCount() / slice.row().size * CeilDiv(slice.row().size, row_step);
    DealUnits(dispatch, units, options.threads);
    builder.Add(std::move(dispatch));
  }
  return absl::OkStatus();
}

}  // namespace opmill
