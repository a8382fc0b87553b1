#include "kernels/operators/matrix/matrix_plan.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace opmill {
namespace {

// Of batches, rows and columns: the part [first, first + count) of each.
struct Part {
  std::array<uint64_t, 4> first = {};
  std::array<uint64_t, 4> count = {};
};

std::array<uint64_t, 4> StridesOf(const MatrixTensor& tensor) {
  return {tensor.batch_strides[0], tensor.batch_strides[1], tensor.row_stride,
          tensor.column_stride};
}

uint64_t BaseOf(const MatrixTensor& tensor, const Part& part) {
  uint64_t base = 0;
  for (size_t i = 0; i < 4; ++i) base += part.first[i] * StridesOf(tensor)[i];
  return base;
}

uint64_t SpanOf(const MatrixTensor& tensor, const Part& part) {
  uint64_t span = tensor.span;
  for (size_t i = 0; i < 4; ++i) span += (part.count[i] - 1) * StridesOf(tensor)[i];
  return span;
}

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
    bool fits = part.count[0] * part.count[1] * part.count[2] * part.count[3] <= kMaxLanes;
    for (size_t i = 0; i < 4 && !fits; ++i) {
      if (CanDivide(part, i) && part.count[i] > most_moved) {
        most_moved = part.count[i];
        divided = i;
      }
    }
    for (const MatrixTensor* tensor :
         {&product_.a, &product_.b, &product_.addend, &product_.output}) {
      if (SpanOf(*tensor, part) < most) continue;
      fits = false;
      for (size_t i = 0; i < 4; ++i) {
        const uint64_t moved = (part.count[i] - 1) * StridesOf(*tensor)[i];
        if (!CanDivide(part, i) || moved <= most_moved) continue;
        most_moved = moved;
        divided = i;
      }
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
    low.count[divided] = part.count[divided] / 2;
    high.first[divided] += low.count[divided];
    high.count[divided] -= low.count[divided];
    if (absl::Status status = Add(low); !status.ok()) return status;
    return Add(high);
  }

 private:
  bool CanDivide(const Part& part, size_t dim) const {
    return part.count[dim] > 1 && (dim != 3 || product_.divides_columns);
  }

  Tiling TilingOf(const Part& part) const {
    constexpr uint64_t kFewRows = 4;
    constexpr uint64_t kLargeSide = 128;
    constexpr uint64_t kSmallSide = 32;
    const uint64_t products = part.count[0] * part.count[1];
    const uint64_t rows = part.count[2];
    const uint64_t columns = part.count[3];
    const auto tiles = [&](uint64_t side) {
      return products * CeilDiv(rows, side) * CeilDiv(columns, side);
    };
    if (rows <= kFewRows || columns <= kFewRows) return {0, products * rows * columns};
    const bool is_large = rows > kLargeSide / 2 && columns > kLargeSide / 2 &&
                          tiles(kLargeSide) >= builder_.options().parallel_groups;
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
    uint64_t results = part.count[2] * part.count[3];
    for (size_t d = 0; d < 2; ++d) {
      results *= part.count[d];
      constants.batches[d] = {
          .size = static_cast<uint32_t>(part.count[d]),
          .a_stride = static_cast<uint32_t>(product_.a.batch_strides[d]),
          .b_stride = static_cast<uint32_t>(product_.b.batch_strides[d]),
          .addend_stride = static_cast<uint32_t>(product_.addend.batch_strides[d]),
          .output_stride = static_cast<uint32_t>(product_.output.batch_strides[d])};
    }
    constants.rows = static_cast<uint32_t>(part.count[2]);
    constants.columns = static_cast<uint32_t>(part.count[3]);
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
    sums.reads[0] = ViewOf(product_.a, part, constants.a_base);
    sums.reads[1] = ViewOf(product_.b, part, constants.b_base);
    const BufferView addend = ViewOf(product_.addend, part, constants.addend_base);
    const PlacedView output =
        WriteElements(BufferRole::Output(), product_.type, BaseOf(product_.output, part),
                      SpanOf(product_.output, part));
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

  BufferView ViewOf(const MatrixTensor& tensor, const Part& part, uint32_t& base) const {
    const PlacedView placed = WriteElements(BufferRole::Input(tensor.input), product_.type,
                                            BaseOf(tensor, part), SpanOf(tensor, part));
    base = static_cast<uint32_t>(placed.base + tensor.first);
    return placed.view;
  }

  PlanBuilder& builder_;
  const MatrixProduct& product_;
  std::vector<Dispatch> joins_;
};

}  // namespace

absl::Status PlanProduct(PlanBuilder& builder, const MatrixProduct& product) {
  Part part;
  part.count = {product.batches[0], product.batches[1], product.rows, product.columns};
  Planner planner(builder, product);
  if (absl::Status status = planner.Add(part); !status.ok()) return status;
  planner.Finish();
  return absl::OkStatus();
}

}  // namespace opmill
