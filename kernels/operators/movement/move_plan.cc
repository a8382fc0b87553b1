// Moves: a dispatch for each slice. Lanes move elements, or up to 16 bytes of adjacent ones.
// Scatters take two passes: the first one notes which of several writes to a place is the last.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/errors.h"
#include "kernels/operators/movement/move.h"
#include "kernels/operators/movement/move_slice.h"
#include "kernels/plan/plan_builder.h"
#include "shaders/move_constants.h"

namespace opmill {
namespace {

static_assert(static_cast<uint32_t>(MoveRule::kPlain) == MOVE_PLAIN);
static_assert(static_cast<uint32_t>(MoveRule::kConstant) == MOVE_CONSTANT);
static_assert(static_cast<uint32_t>(MoveRule::kEdge) == MOVE_EDGE);
static_assert(static_cast<uint32_t>(MoveRule::kMirror) == MOVE_MIRROR);
static_assert(static_cast<uint32_t>(MoveRule::kWrap) == MOVE_WRAP);
static_assert(static_cast<uint32_t>(MoveRule::kReversed) == MOVE_REVERSED);
static_assert(static_cast<uint32_t>(MoveRule::kRow) == MOVE_ROW);
static_assert(static_cast<uint32_t>(MoveRule::kColumn) == MOVE_COLUMN);
static_assert(static_cast<uint32_t>(MoveRule::kOrder) == MOVE_ORDER);
static_assert(static_cast<uint32_t>(MoveRule::kNearest) == MOVE_NEAREST);

constexpr uint64_t kMostElements = uint64_t{1} << 31;

uint32_t Low(uint64_t bits) { return static_cast<uint32_t>(bits); }
uint32_t High(uint64_t bits) { return static_cast<uint32_t>(bits >> 32); }

ViewFormat FormatOf(uint32_t bytes) {
  switch (bytes) {
    case 1:
      return ViewFormat::kUint8;
    case 2:
      return ViewFormat::kUint16;
    case 4:
      return ViewFormat::kUint32;
    case 8:
      return ViewFormat::kUint32x2;
    default:
      return ViewFormat::kVector;
  }
}

// A view of elements of so many bytes, from the vector on that has the first one.
struct ElementView {
  BufferView view;
  uint64_t first = 0;  // the element that is the view's first one
};

ElementView ViewOf(BufferRole role, ViewFormat format, uint64_t offset_bytes, uint32_t bytes,
                   const MoveExtent& extent) {
  const uint64_t first = extent.first / (kVectorBytes / bytes) * (kVectorBytes / bytes);
  return {.view = {.role = role,
                   .format = format,
                   .offset_bytes = offset_bytes + first * bytes,
                   .element_count = (extent.last - first) * bytes / ViewElementBytes(format) + 1},
          .first = first};
}

class Planner {
 public:
  Planner(PlanBuilder& builder, const OperatorDesc& desc)
      : builder_(builder), desc_(desc), bytes_(ElementBytes(desc.outputs[0]->data_type)) {}

  absl::Status Add(Move move, const char* entry) {
    Simplify(move);
    const uint32_t width = bytes_ * Widen(move, bytes_);
    const uint32_t index_bytes = ElementBytes(desc_.inputs[move.index_input].data_type);
    const PlanOptions& options = builder_.options();
    const uint64_t vectors = options.max_view_elements - 1;
    const SliceLimits limits = {
        .elements = {std::min(vectors * (kVectorBytes / width), kMostElements),
                     std::min(options.max_view_elements - kVectorBytes, kMostElements),
                     std::min(vectors * (kVectorBytes / index_bytes), kMostElements)},
        .results = kMaxLanes / 2};
    ASSIGN_OR_RETURN(const std::vector<MoveSlice> slices, SliceMove(move, limits));
    for (const MoveSlice& slice : slices) {
      if (builder_.full()) return absl::OkStatus();
      AddSlice(slice, entry, width, index_bytes);
    }
    return absl::OkStatus();
  }

  // The marks of all elements of the output.
  void ReserveMarks() {
    marks_ = builder_.ReserveCounted(SpannedBytes(*desc_.outputs[0]) / bytes_, 0);
  }

 private:
  void AddSlice(const MoveSlice& slice, const char* entry, uint32_t width, uint32_t index_bytes) {
    const Move& move = slice.move;
    MoveConstants constants = ConstantsOf(slice);
    Dispatch dispatch;
    KernelPermutation kernel = {.shader = "move",
                                .entry = entry,
                                .macros = {{"THREADS", builder_.options().threads},
                                           {"INDEXED", move.index != MoveIndex::kNone ? 1u : 0u}}};
    const bool marks = kernel.entry == "Mark";
    const bool scatters = kernel.entry == "Scatter";
    const MoveExtent written = ExtentOf(slice, kOutputTensor);
    const ElementView output = ViewOf(BufferRole::Output(), FormatOf(width), 0, width, written);
    constants.output_base = Low(move.bases[kOutputTensor] - output.first);
    if (marks || scatters) {
      const ElementView view =
          ViewOf(BufferRole::Scratch(), ViewFormat::kUint32, marks_->offset_bytes, 4, written);
      constants.mark_base = Low(output.first - view.first);
      dispatch.writes[marks ? 0 : 1] = view.view;
      kernel.macros.push_back({marks ? "MARKS_ONLY" : "SCATTERS", 1});
    }
    if (!marks) {
      const ElementView input = ViewOf(BufferRole::Input(move.input), ViewFormat::kVector, 0, width,
                                       ExtentOf(slice, kInputTensor));
      dispatch.reads[0] = input.view;
      dispatch.writes[0] = output.view;
      constants.input_base = Low(move.bases[kInputTensor] - input.first);
      kernel.macros.push_back({"ELEMENT_BYTES", width});
    }
    if (move.index != MoveIndex::kNone) {
      const ElementView indices = ViewOf(BufferRole::Input(move.index_input), ViewFormat::kVector,
                                         0, index_bytes, ExtentOf(slice, kIndicesTensor));
      dispatch.reads[1] = indices.view;
      constants.index_base = Low(move.bases[kIndicesTensor] - indices.first);
      constants.index_words = index_bytes / 4;
      constants.index_signed = IsSigned(desc_.inputs[move.index_input].data_type) ? 1 : 0;
    }
    dispatch.kernel = builder_.Kernel(std::move(kernel));
    dispatch.constants = constants;
    DealUnits(dispatch, CountOf(move.dims), builder_.options().threads);
    builder_.Add(std::move(dispatch));
  }

  // Without bases.
  MoveConstants ConstantsOf(const MoveSlice& slice) const {
    const Move& move = slice.move;
    MoveConstants constants = {};
    constants.rank = static_cast<uint32_t>(move.dims.size());
    for (size_t d = 0; d < move.dims.size(); ++d) {
      const MoveDim& dim = move.dims[d];
      constants.dims[d] = ToDim({dim.size, dim.strides});
      if (dim.rule == MoveRule::kPlain) continue;
      const bool turns = dim.rule == MoveRule::kMirror;
      const auto origin = static_cast<uint64_t>(dim.origin);
      constants.rules[d] = {.rule = static_cast<uint32_t>(dim.rule),
                            .start = Low(static_cast<uint64_t>(dim.start)),
                            .size = Low(turns ? dim.period : dim.input_size),
                            .last = Low(dim.input_size - 1),
                            .origin_low = Low(origin),
                            .origin_high = High(origin),
                            .scale_low = Low(dim.scale),
                            .scale_high = High(dim.scale)};
    }
    constants.indexed_rank = static_cast<uint32_t>(move.indexed.size());
    constants.writes_invalid = 1;
    for (size_t i = 0; i < move.indexed.size(); ++i) {
      constants.indexed[i] = {.size = Low(move.indexed[i].size),
                              .first = Low(slice.ranges[i].first),
                              .count = Low(slice.ranges[i].count),
                              .stride = Low(move.indexed[i].stride)};
      if (slice.ranges[i].first > 0) constants.writes_invalid = 0;
    }
    constants.has_lengths = move.index == MoveIndex::kLength ? 1 : 0;
    constants.index_step = Low(move.index_step);
    constants.fill_begin = static_cast<uint32_t>(move.fill_begin);
    constants.fill_end = static_cast<uint32_t>(move.fill_end);
    uint64_t repeated = move.constant;
    for (uint32_t bits = 8 * bytes_; bits < 64; bits *= 2) {
      repeated &= ~uint64_t{0} >> (64 - bits);
      repeated |= repeated << bits;
    }
    constants.constant0 = constants.constant2 = Low(repeated);
    constants.constant1 = constants.constant3 = High(repeated);
    return constants;
  }

  PlanBuilder& builder_;
  const OperatorDesc& desc_;
  const uint32_t bytes_;
  std::optional<BufferView> marks_;
};

}  // namespace

absl::Status PlanMovement(PlanBuilder& builder, const OperatorDesc& desc) {
  FillGaps(builder, BufferRole::Output(), *desc.outputs[0]);
  Planner planner(builder, desc);
  std::vector<Move> moves = MovesOf(desc);
  for (const Move& move : moves) {
    const bool scatters = move.index == MoveIndex::kDestination;
    if (scatters) planner.ReserveMarks();
    RETURN_IF_ERROR(planner.Add(move, scatters ? "Mark" : "Move"));
  }
  for (const Move& move : moves) {
    if (move.index != MoveIndex::kDestination) continue;
    builder.NextPass();
    RETURN_IF_ERROR(planner.Add(move, "Scatter"));
  }
  return absl::OkStatus();
}

}  // namespace opmill
