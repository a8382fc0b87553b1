#include "kernels/operators/matrix/matrix_plan.h"

#include <algorithm>
#include <utility>

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

class Planner {
 public:
  Planner(PlanBuilder& builder, const MatrixProduct& product)
      : builder_(builder), product_(product) {}

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

  void AddDispatch(const Part& part) {
    constexpr uint64_t kFewRows = 4;
    constexpr uint64_t kLargeTile = 128;
    constexpr uint64_t kSmallTile = 32;
    constexpr uint32_t kLargeThreads = 256;
    constexpr uint32_t kSmallThreads = 64;
    const uint64_t batches = part.count[0] * part.count[1];
    const uint64_t rows = part.count[2];
    const uint64_t columns = part.count[3];
    const uint64_t large_tiles = batches * CeilDiv(rows, kLargeTile) * CeilDiv(columns, kLargeTile);
    const bool each = rows <= kFewRows || columns <= kFewRows;
    const bool is_large = rows > kLargeTile / 2 && columns > kLargeTile / 2 &&
                          large_tiles >= builder_.options().parallel_groups;
    const uint64_t tile = is_large ? kLargeTile : kSmallTile;

    KernelPermutation kernel = {.shader = "matrix",
                                .entry = each ? "SumEach" : "Multiply",
                                .macros = {{"DATA_TYPE", static_cast<uint32_t>(product_.type)},
                                           {"HALVES", each       ? 0u
                                                      : is_large ? 2u
                                                                 : 1u},
                                           {"IMAGE", product_.is_image ? 1u : 0u},
                                           {"SPREAD", product_.is_spread ? 1u : 0u},
                                           {"THREADS", each       ? builder_.options().threads
                                                       : is_large ? kLargeThreads
                                                                  : kSmallThreads}}};
    Dispatch dispatch;
    dispatch.kernel = builder_.Kernel(std::move(kernel));

    MatrixConstants constants = product_.constants;
    for (size_t d = 0; d < 2; ++d) {
      constants.batches[d] = {
          .size = static_cast<uint32_t>(part.count[d]),
          .a_stride = static_cast<uint32_t>(product_.a.batch_strides[d]),
          .b_stride = static_cast<uint32_t>(product_.b.batch_strides[d]),
          .addend_stride = static_cast<uint32_t>(product_.addend.batch_strides[d]),
          .output_stride = static_cast<uint32_t>(product_.output.batch_strides[d])};
    }
    constants.rows = static_cast<uint32_t>(rows);
    constants.columns = static_cast<uint32_t>(columns);
    constants.row_tiles = static_cast<uint32_t>(CeilDiv(rows, tile));
    constants.column_tiles = static_cast<uint32_t>(CeilDiv(columns, tile));
    dispatch.reads[0] = ViewOf(product_.a, part, constants.a_base);
    dispatch.reads[1] = ViewOf(product_.b, part, constants.b_base);
    dispatch.reads[2] = ViewOf(product_.addend, part, constants.addend_base);
    const PlacedView output =
        WriteElements(BufferRole::Output(), product_.type, BaseOf(product_.output, part),
                      SpanOf(product_.output, part));
    dispatch.writes[0] = output.view;
    constants.output_base = output.base;
    dispatch.constants = constants;
    if (each) {
      DealUnits(dispatch, batches * rows * columns, builder_.options().threads);
    } else {
      SetGroups(dispatch, batches * constants.row_tiles * constants.column_tiles);
    }
    builder_.Add(std::move(dispatch));
  }

  BufferView ViewOf(const MatrixTensor& tensor, const Part& part, uint32_t& base) const {
    const PlacedView placed = WriteElements(BufferRole::Input(tensor.input), product_.type,
                                            BaseOf(tensor, part), SpanOf(tensor, part));
    base = static_cast<uint32_t>(placed.base + tensor.first);
    return placed.view;
  }

  PlanBuilder& builder_;
  const MatrixProduct& product_;
};

}  // namespace

absl::Status PlanProduct(PlanBuilder& builder, const MatrixProduct& product) {
  Part part;
  part.count = {product.batches[0], product.batches[1], product.rows, product.columns};
  return Planner(builder, product).Add(part);
}

}  // namespace opmill
