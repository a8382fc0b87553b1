#include "kernels/operators/matrix/matrix_plan.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace opmill {
namespace {

// Those of MatrixProduct::dims.
constexpr size_t kRows = 2;
constexpr size_t kColumns = 3;

// A part of a product.
struct Part {
  ProductDims dims;
  Offsets<4> bases = {};
};

// `step` in the digits of a row of B: of a convolution its channel and its tap in each dimension.
void SetDepthStep(MatrixConstants& constants, bool is_image, uint32_t step) {
  constants.depth_step = step;
  if (!is_image) return;
  uint32_t rest = step;
  for (size_t i = 3; i-- > 0; rest /= constants.axes[i].taps) {
    constants.axes[i].depth_digit = rest % constants.axes[i].taps;
  }
  constants.depth_channels = rest;
}

// The same product, whose plain sums are written one after the other.
MatrixConstants WithPackedSums(MatrixConstants constants) {
  constants.has_addend = 0;
  constants.alpha = std::bit_cast<uint32_t>(1.0f);
  constants.output_base = 0;
  constants.output_column_stride = 1;
  uint32_t stride = 1;
  for (size_t i = 3; i-- > 0; stride *= constants.axes[i].outputs) {
    constants.axes[i].output_stride = stride;
  }
  constants.output_row_stride = constants.columns;
  constants.batches[1].output_stride = constants.columns * constants.rows;
  constants.batches[0].output_stride =
      constants.batches[1].output_stride * constants.batches[1].size;
  return constants;
}

// How a part is computed: with tiles of `side` x `side` results, or if it is 0 with a lane for
// each.
struct Tiling {
  uint64_t side = 0;
  uint64_t units = 1;  // tiles or results
};

class Planner {
 public:
  Planner(PlanBuilder& builder, const MatrixProduct& product)
      : builder_(builder), product_(product) {}

  // Adds what follows the dispatches of all parts.
  void Finish() {
    builder_.NextPass();
    for (Dispatch& join : joins_) builder_.Add(std::move(join));
  }

  absl::Status Add(const Part& part) {
    if (builder_.full()) return absl::OkStatus();
    // A view begins at a multiple of 16 bytes.
    const uint64_t most =
        builder_.options().max_view_elements - kVectorBytes / ElementBytes(product_.type);
    uint64_t most_moved = 0;
    size_t divided = 0;
    const auto consider = [&](size_t dim, uint64_t moved) {
      if (!CanDivide(part, dim) || moved <= most_moved) return;
      most_moved = moved;
      divided = dim;
    };
    bool fits = CountOf(part.dims) <= kMaxLanes;
    for (size_t d = 0; d < part.dims.size() && !fits; ++d) consider(d, part.dims[d].size);
    for (size_t tensor = 0; tensor < product_.tensors.size(); ++tensor) {
      if (Reach(part, tensor) < most) continue;
      fits = false;
      for (size_t d = 0; d < part.dims.size(); ++d) consider(d, SpanOf(part.dims[d], tensor));
    }
    if (fits) {
      AddDispatch(part);
      return absl::OkStatus();
    }
    if (most_moved == 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("The elements that one sum reads or an image writes reach further than a "
                       "view of ",
                       builder_.options().max_view_elements, " elements."));
    }
    Part low = part;
    Part high = part;
    low.dims[divided].size /= 2;
    high.dims[divided].size -= low.dims[divided].size;
    Advance(high.bases, high.dims[divided], low.dims[divided].size);
    if (absl::Status status = Add(low); !status.ok()) return status;
    return Add(high);
  }

 private:
  bool CanDivide(const Part& part, size_t dim) const {
    return part.dims[dim].size > 1 && (dim != kColumns || product_.divides_columns);
  }

  uint64_t Reach(const Part& part, size_t tensor) const {
    return product_.tensors[tensor].span + SpanOf(part.dims, tensor);
  }

  Tiling TilingOf(const Part& part) const {
    constexpr uint64_t kFewRows = 4;
    constexpr uint64_t kLargeSide = 128;
    constexpr uint64_t kSmallSide = 32;
    const uint64_t products = part.dims[0].size * part.dims[1].size;
    const uint64_t rows = part.dims[kRows].size;
    const uint64_t columns = part.dims[kColumns].size;
    const auto tiles = [&](uint64_t side) {
      return products * CeilDiv(rows, side) * CeilDiv(columns, side);
    };
    if (rows <= kFewRows || columns <= kFewRows) return {0, products * rows * columns};
    // A lane of a large tile has so many registers that half as many groups fill the device.
    const bool is_large = rows > kLargeSide / 2 && columns > kLargeSide / 2 &&
                          2 * tiles(kLargeSide) > builder_.options().parallel_groups;
    const uint64_t side = is_large ? kLargeSide : kSmallSide;
    return {side, tiles(side)};
  }

  // As many as fill the device, unless they are so few or so short that they do not pay for the
  // pass that joins them.
  uint64_t SlotsOf(const Tiling& tiling, uint64_t results) const {
    constexpr uint64_t kLeastOfLane = 32;  // rows of B in a slot
    constexpr uint64_t kLeastOfTile = 64;
    constexpr uint64_t kFewest = 4;
    constexpr uint64_t kMost = 128;  // which one lane of Join adds
    const PlanOptions& options = builder_.options();
    const bool each = tiling.side == 0;
    const uint64_t room = each ? options.parallel_lanes() : 2 * options.parallel_groups;
    const uint64_t slots = std::min(
        {room / tiling.units, product_.constants.depth / (each ? kLeastOfLane : kLeastOfTile),
         options.max_view_elements / results, kMost});
    return slots < kFewest ? 1 : slots;
  }

  // All but bases.
  MatrixConstants ConstantsOf(const Part& part, const Tiling& tiling) const {
    MatrixConstants constants = product_.constants;
    const uint64_t results = CountOf(part.dims);
    for (size_t d = 0; d < 2; ++d) {
      const StridedDim<4>& dim = part.dims[d];
      constants.batches[d] = {.size = static_cast<uint32_t>(dim.size),
                              .a_stride = static_cast<uint32_t>(dim.strides[kProductA]),
                              .b_stride = static_cast<uint32_t>(dim.strides[kProductB]),
                              .addend_stride = static_cast<uint32_t>(dim.strides[kProductAddend]),
                              .output_stride = static_cast<uint32_t>(dim.strides[kProductOutput])};
    }
    constants.rows = static_cast<uint32_t>(part.dims[kRows].size);
    constants.columns = static_cast<uint32_t>(part.dims[kColumns].size);
    constants.slots = static_cast<uint32_t>(SlotsOf(tiling, results));
    constants.slot_stride = static_cast<uint32_t>(results);
    if (tiling.side == 0) {
      const uint32_t larger_runs_across = constants.rows > constants.columns
                                              ? constants.a_runs_along_rows
                                              : constants.b_runs_along_columns;
      constants.slots_are_adjacent = 1 - larger_runs_across;
      SetDepthStep(constants, product_.is_image, constants.slots);
    } else {
      constants.row_tiles = static_cast<uint32_t>(CeilDiv(constants.rows, tiling.side));
      constants.column_tiles = static_cast<uint32_t>(CeilDiv(constants.columns, tiling.side));
      constants.slot_depth = RoundUp(CeilDiv(constants.depth, constants.slots), MATRIX_BLOCK_DEPTH);
      constants.slots = CeilDiv(constants.depth, constants.slot_depth);
      SetDepthStep(constants, product_.is_image, MATRIX_BLOCK_DEPTH);
    }
    return constants;
  }

  uint32_t Kernel(const char* entry, DataType result, const Tiling& tiling, uint32_t threads) {
    return builder_.Kernel({.shader = "matrix",
                            .entry = entry,
                            .macros = {{"DATA_TYPE", static_cast<uint32_t>(product_.type)},
                                       {"RESULT", static_cast<uint32_t>(result)},
                                       {"HALVES", static_cast<uint32_t>(CeilDiv(tiling.side, 64))},
                                       {"IMAGE", product_.is_image ? 1u : 0u},
                                       {"SPREAD", product_.is_spread ? 1u : 0u},
                                       {"THREADS", threads}}});
  }

  void AddDispatch(const Part& part) {
    const uint32_t threads = builder_.options().threads;
    const Tiling tiling = TilingOf(part);
    MatrixConstants constants = ConstantsOf(part, tiling);
    const uint64_t results = constants.slot_stride;
    const uint64_t slots = constants.slots;
    Dispatch sums;
    sums.reads[0] = ViewOf(kProductA, part, constants.a_base);
    sums.reads[1] = ViewOf(kProductB, part, constants.b_base);
    const BufferView addend = ViewOf(kProductAddend, part, constants.addend_base);
    const PlacedView output =
        WriteElements(BufferRole::Output(), product_.type, part.bases[kProductOutput],
                      Reach(part, kProductOutput));
    constants.output_base = output.base;
    DataType result = product_.type;
    if (slots == 1) {
      sums.reads[2] = addend;
      sums.writes[0] = output.view;
      sums.constants = constants;
    } else {
      result = DataType::kFloat32;
      const uint64_t offset =
          builder_.ReserveRecords(CeilDiv(slots * results * sizeof(float), kVectorBytes));
      sums.writes[0] = {BufferRole::Scratch(), ViewFormat::kUint32, offset, slots * results};
      sums.constants = WithPackedSums(constants);
      Dispatch join;
      join.kernel = Kernel("Join", product_.type, Tiling(), threads);
      join.reads[0] = sums.writes[0];
      join.reads[2] = addend;
      join.writes[0] = output.view;
      join.constants = constants;
      DealUnits(join, results, threads);
      joins_.push_back(std::move(join));
    }
    if (tiling.side == 0) {
      sums.kernel = Kernel("SumEach", result, tiling, threads);
      DealUnits(sums, tiling.units * slots, threads);
    } else {
      // A lane has a square of 4 or 8 results a side.
      sums.kernel = Kernel("Multiply", result, tiling, tiling.side == 32 ? 64 : 256);
      SetGroups(sums, tiling.units * slots);
    }
    builder_.Add(std::move(sums));
  }

  BufferView ViewOf(ProductTensor which, const Part& part, uint32_t& base) const {
    const MatrixTensor& tensor = product_.tensors[which];
    const PlacedView placed = WriteElements(BufferRole::Input(tensor.input), product_.type,
                                            part.bases[which], Reach(part, which));
    base = static_cast<uint32_t>(placed.base + tensor.first);
    return placed.view;
  }

  PlanBuilder& builder_;
  const MatrixProduct& product_;
  std::vector<Dispatch> joins_;
};

}  // namespace

absl::Status PlanProduct(PlanBuilder& builder, const MatrixProduct& product) {
  Planner planner(builder, product);
  if (absl::Status status = planner.Add({.dims = product.dims}); !status.ok()) return status;
  planner.Finish();
  return absl::OkStatus();
}

}  // namespace opmill
