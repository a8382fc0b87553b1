// Element-wise chains: one dispatch per slice. Lanes compute quads if rows allow it, otherwise
// single elements.
#include <algorithm>
#include <utility>

#include "kernels/dims/elementwise_space.h"
#include "kernels/operators/elementwise/element_wise_chain.h"
#include "kernels/operators/elementwise/element_wise_text.h"
#include "kernels/plan/plan_builder.h"
#include "shaders/elementwise_constants.h"

namespace opmill {
namespace {

constexpr uint64_t kQuad = 4;

// Quads of 64 bits are two vectors; the others are one element of the view.
PlacedView WriteQuads(DataType type, uint64_t base, uint64_t span) {
  const uint32_t bytes = ElementBytes(type);
  const uint64_t per_vector = kVectorBytes / bytes;
  const uint64_t first = base / per_vector * per_vector;
  const uint64_t step = std::min(kQuad, per_vector);
  const ViewFormat format = bytes == 1   ? ViewFormat::kUint32
                            : bytes == 2 ? ViewFormat::kUint32x2
                                         : ViewFormat::kVector;
  return {.view = {.role = BufferRole::Output(),
                   .format = format,
                   .offset_bytes = first * bytes,
                   .element_count = (base + span - first) / step + 1},
          .base = static_cast<uint32_t>(base - first)};
}

ElementwiseOffsets LimitsOf(const Chain& chain, bool in_quads, const PlanOptions& options) {
  constexpr uint64_t kMost = uint64_t{1} << 31;
  ElementwiseOffsets limits;
  limits.fill(kNoLimit);
  for (size_t i = 0; i < chain.inputs.size(); ++i) {
    const uint64_t vector = kVectorBytes / ElementBytes(chain.inputs[i].data_type);
    limits[i] = std::min((options.max_view_elements - 1) * vector, kMost);
  }
  const uint64_t vector = kVectorBytes / ElementBytes(chain.output.data_type);
  const uint64_t quads = (options.max_view_elements - 4) * std::min(kQuad, vector);
  limits[kTensorOutput] = std::min(in_quads ? quads : options.max_view_elements - vector, kMost);
  return limits;
}

// With `in_quads`, a step along a row is a quad.
void SetDims(ElementwiseConstants& constants, const ElementwiseSpace& space, uint64_t row_step) {
  constants.rank = static_cast<uint32_t>(space.dims.size());
  for (size_t d = 0; d < space.dims.size(); ++d) {
    const ElementwiseSpace::Dim& dim = space.dims[d];
    const uint64_t step = d + 1 == space.dims.size() ? row_step : 1;
    const auto stride = [&](size_t tensor) {
      return static_cast<uint32_t>(dim.strides[tensor] * step);
    };
    constants.dims[d] = {.size = static_cast<uint32_t>(CeilDiv(dim.size, step)),
                         .output_stride = stride(kTensorOutput),
                         .stride0 = stride(0),
                         .stride1 = stride(1),
                         .stride2 = stride(2),
                         .stride3 = stride(3),
                         .stride4 = stride(4),
                         .stride5 = stride(5),
                         .stride6 = stride(6),
                         .stride7 = stride(7)};
  }
  constants.row_length = static_cast<uint32_t>(space.row().size);
}

void SetParameters(ElementwiseConstants& constants, const Chain& chain) {
  size_t index = 0;
  for (const ChainStep& step : chain.steps) {
    for (const uint64_t parameter : step.parameters) {
      ElementwiseParameters& to = constants.parameters[index / 2];
      (index % 2 == 0 ? to.low0 : to.low1) = static_cast<uint32_t>(parameter);
      (index % 2 == 0 ? to.high0 : to.high1) = static_cast<uint32_t>(parameter >> 32);
      ++index;
    }
  }
}

}  // namespace

absl::Status PlanElementWise(PlanBuilder& builder, const OperatorDesc& desc) {
  static constexpr uint ElementwiseConstants::*kBases[] = {
      &ElementwiseConstants::base0, &ElementwiseConstants::base1, &ElementwiseConstants::base2,
      &ElementwiseConstants::base3, &ElementwiseConstants::base4, &ElementwiseConstants::base5,
      &ElementwiseConstants::base6, &ElementwiseConstants::base7};
  const Chain chain = ChainOf(desc);
  const DataType type = chain.output.data_type;
  const uint32_t threads = builder.options().threads;
  FillGaps(builder, BufferRole::Output(), chain.output);
  ElementwiseSpace space = MakeElementwiseSpace(chain.inputs, chain.output);
  for (uint32_t i = 0; i < chain.inputs.size(); ++i) space.bases[i] = builder.first_element(i);
  const bool in_quads = WalksGroups(space, kQuad);
  const uint64_t row_step = in_quads ? kQuad : 1;
  const uint32_t kernel = builder.Kernel({.shader = "element_wise",
                                          .entry = "Map",
                                          .macros = {{"OUTPUT_BYTES", ElementBytes(type)},
                                                     {"THREADS", threads},
                                                     {"WIDTH", static_cast<uint32_t>(row_step)}},
                                          .text = ChainText(chain, space, in_quads)});
  for (const ElementwiseSpace& slice :
       SliceElementwise(space, LimitsOf(chain, in_quads, builder.options()), row_step)) {
    if (builder.full()) return absl::OkStatus();
    Dispatch dispatch;
    dispatch.kernel = kernel;
    ElementwiseConstants constants = {};
    for (uint32_t i = 0; i < chain.inputs.size(); ++i) {
      const PlacedView read = ReadElements(chain.inputs[i].data_type, slice.bases[i],
                                           SpanOf(slice.dims, i), BufferRole::Input(i));
      dispatch.reads[i] = read.view;
      constants.*kBases[i] = read.base;
    }
    const uint64_t base = slice.bases[kTensorOutput];
    const uint64_t span = SpanOf(slice.dims, kTensorOutput);
    const PlacedView output = in_quads ? WriteQuads(type, base, span)
                                       : WriteElements(BufferRole::Output(), type, base, span);
    dispatch.writes[0] = output.view;
    constants.output_base = output.base;
    SetDims(constants, slice, row_step);
    SetParameters(constants, chain);
    dispatch.constants = constants;
    const uint64_t rows = CountOf(slice.dims) / slice.row().size;
    DealUnits(dispatch, rows * CeilDiv(slice.row().size, row_step), threads);
    builder.Add(std::move(dispatch));
  }
  return absl::OkStatus();
}

}  // namespace opmill
