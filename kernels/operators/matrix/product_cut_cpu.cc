#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/rounding.h"
#include "kernels/operators/matrix/product_cut.h"
#include "kernels/operators/matrix/winograd.h"

namespace opmill {
namespace {

// Columns of a task: enough for kLeastTaskProducts, and within these limits.
constexpr uint64_t kLeastColumns = 256;
constexpr uint64_t kMostColumns = 4096;
// Multiplications of a task: less than three milliseconds, and enough to be worth a task.
constexpr uint64_t kMostTaskProducts = uint64_t{1} << 27;
constexpr uint64_t kLeastTaskProducts = uint64_t{1} << 20;
// Of few rows, whose panels of B are read once: a task begins with one that is not prefetched.
constexpr uint64_t kFewRows = 48;
constexpr uint64_t kLeastFewRowProducts = uint64_t{1} << 21;
// Of one row, whose time is that of reading B: 512 KiB. Four times as much is read in the time that
// it takes to wake a thread.
constexpr uint64_t kLeastRowProducts = uint64_t{1} << 17;
constexpr uint64_t kLeastCutRowProducts = 4 * kLeastRowProducts;
constexpr uint64_t kWantedTasks = 8;
constexpr uint64_t kWantedLineTasks = 4;  // fewer: tasks for other rows copy the same lines
// Outputs of a window for which the lines are copied at a time: they stay in the first cache.
constexpr uint64_t kWindowColumns = 4096;
// B is read in place up to these numbers of panels of A, or of its rows.
constexpr uint64_t kFewPanels = 2;
constexpr uint64_t kShortDepth = 64;
// A up to this size is packed by each task, and larger ones once, before.
constexpr uint64_t kSmallA = uint64_t{1} << 14;
constexpr uint64_t kPackElements = uint64_t{1} << 14;

// The largest part, as a multiple of the average one.
double UnevennessOf(uint64_t total, uint64_t unit, uint64_t most) {
  const uint64_t parts = CeilDiv(total, most);
  uint64_t largest = 0;
  for (uint64_t i = 0; i < parts; ++i) {
    largest = std::max(largest, PartAt(total, unit, parts, i).count);
  }
  return static_cast<double>(largest * parts) / static_cast<double>(total);
}

uint64_t TasksOf(const ProductWork& work, const ProductCut& cut) {
  return CeilDiv(CountOf(work.batches), cut.batches) * CeilDiv(work.rows, cut.rows) *
         ColumnPartsOf(work, cut);
}

// Bands of lines with at most so many outputs, unless a line has more: of those heights that take
// not many more bands the one whose bands fill vectors best.
void CutLines(const ProductWork& work, const MatrixKernels& kernels, uint64_t columns,
              ProductCut& cut) {
  const auto& axes = work.image->axes;
  const uint64_t outputs = axes[1].outputs;
  const uint64_t most = EvenPart(outputs, std::max<uint64_t>(columns / axes[2].outputs, 1));
  const ImageLines line(*work.image, 1);
  const auto vectors_of = [&](uint64_t lines) {
    return lines == 0 ? 0 : CeilDiv(line.SpanOf(lines), kernels.lanes);
  };
  uint64_t least_vectors = std::numeric_limits<uint64_t>::max();
  for (uint64_t lines = most; lines > most * 3 / 4; --lines) {
    const uint64_t vectors = outputs / lines * vectors_of(lines) + vectors_of(outputs % lines);
    if (vectors >= least_vectors) continue;
    least_vectors = vectors;
    cut.band_lines = lines;
  }
  cut.bands = CeilDiv(outputs, cut.band_lines);
  if (cut.method == ProductMethod::kLines) cut.columns = cut.band_lines * axes[2].outputs;
}

ProductMethod MethodOf(const ProductWork& work, const ProductCut& cut) {
  constexpr uint64_t kMostWindowRows = 4;
  if (CanTile(work, cut)) return ProductMethod::kTiles;
  if (work.image.has_value() && CanReadLines(*work.image)) {
    const uint64_t taps = work.image->taps.size();
    if (work.rows <= kMostWindowRows && work.depth == taps) return ProductMethod::kWindow;
    if (taps <= kBlockDepth) return ProductMethod::kLines;
  }
  if (work.rows > 1 || work.is_batched || work.image.has_value() || work.is_half ||
      !work.b.tap_offsets.empty()) {
    return ProductMethod::kPanels;
  }
  if (work.b.stride == 1) return ProductMethod::kRow;
  return work.b.depth_stride == 1 ? ProductMethod::kDots : ProductMethod::kPanels;
}

// Of a window over one plane of adjacent numbers, if there is a kernel for it.
std::optional<WindowShape> WindowOf(const ProductWork& work, const MatrixKernels& kernels) {
  const auto& axes = work.image->axes;
  if (kernels.window == nullptr || work.is_half || axes[0].outputs != 1 || axes[2].stride != 1 ||
      axes[2].step > 2) {
    return std::nullopt;
  }
  std::vector<std::array<int64_t, 2>> taps;
  for (const std::array<int64_t, 3>& tap : work.image->taps) {
    if (tap[0] != 0) return std::nullopt;
    taps.push_back({tap[1], tap[2]});
  }
  return WindowShape(taps, {axes[1].size, axes[2].size}, axes[1].stride,
                     {axes[1].step, axes[2].step}, {axes[1].outputs, axes[2].outputs},
                     kernels.lanes);
}

// Whether the rows of A are read in place: adjacent numbers, which do not share a few sets of the
// cache.
bool HasDirectA(const ProductWork& work) {
  return !work.is_half && work.a.tap_offsets.empty() && work.a.depth_stride == 1 &&
         work.a.stride > 0 && (work.a.stride * sizeof(float) % 1024 != 0);
}

// Whether copying B into panels is not worth while: for few rows, or if it is short.
bool HasDirectB(const ProductWork& work, const ProductCut& cut) {
  if (work.image.has_value() || work.is_half || work.b.stride != 1) return false;
  return cut.row_panels <= kFewPanels || work.depth <= kShortDepth;
}

// The most columns that vectors are filled with at a time: those of a plane, with what is between
// lines.
uint64_t SpanOf(const ProductWork& work, const ProductCut& cut) {
  if (cut.method != ProductMethod::kLines) return work.columns;
  const uint64_t lines = work.image->axes[1].outputs;
  return ImageLines(*work.image, lines).SpanOf(lines);
}

// Whether the rows fill vectors better than the columns, even though the result is transposed.
bool HasRowLanes(const ProductWork& work, const MatrixKernels& kernels, const ProductCut& cut) {
  constexpr uint64_t kTransposing = 48;  // as many multiplications of an element take as long
  const bool is_plain = !work.is_half && !work.is_batched && work.b.stride == 1 &&
                        work.b.tap_offsets.empty() &&
                        kBlockDepth * work.b.depth_stride <= std::numeric_limits<uint32_t>::max();
  const bool has_panels =
      cut.method == ProductMethod::kPanels && (work.image.has_value() || is_plain);
  if (work.alpha != 1 || work.rows == 1 ||
      (work.addend.has_value() && work.addend->column_stride != 0) ||
      !(has_panels || cut.method == ProductMethod::kLines)) {
    return false;
  }
  const uint64_t planes =
      cut.method == ProductMethod::kLines ? work.image->axes[0].outputs : uint64_t{1};
  const uint64_t by_columns = planes * RoundUp(SpanOf(work, cut), kernels.lanes) * work.rows;
  const uint64_t by_rows = work.columns * RoundUp(work.rows, kernels.lanes);
  return by_rows * (work.depth + kTransposing) < by_columns * work.depth;
}

// Packs A, of which each copy takes so many floats, in a phase of its own.
void PackFirst(const ProductWork& work, uint64_t floats, ProductCut& cut, ProductScratch& scratch) {
  const uint64_t copies = CopiesOf(work, kProductA);
  cut.packs_first = true;
  cut.scratch = scratch.a;
  scratch.a += copies * floats;
  cut.packs = copies * CeilDiv(work.rows, cut.pack_rows);
}

void PlacePackedA(const ProductWork& work, ProductCut& cut, ProductScratch& scratch) {
  const uint64_t copies = CopiesOf(work, kProductA);
  const uint64_t floats = cut.row_panels * cut.panel_rows * work.depth;
  if ((cut.method != ProductMethod::kPanels && cut.method != ProductMethod::kLines) ||
      cut.has_direct_a || work.rows * work.depth <= kSmallA || cut.tasks < 2 * copies ||
      copies * floats * sizeof(float) > kMostPackedBytes) {
    return;
  }
  cut.pack_rows =
      std::max<uint64_t>(kPackElements / (work.depth * cut.panel_rows), 1) * cut.panel_rows;
  PackFirst(work, floats, cut, scratch);
}

}  // namespace

uint64_t ColumnPartsOf(const ProductWork& work, const ProductCut& cut) {
  if (HasBands(cut.method)) return work.image->axes[0].outputs * cut.bands;
  return CeilDiv(work.columns, cut.columns);
}

PartRange PartAt(uint64_t total, uint64_t unit, uint64_t parts, uint64_t index) {
  const uint64_t units = CeilDiv(total, unit);
  const uint64_t first = units * index / parts * unit;
  return {first, std::min(total, units * (index + 1) / parts * unit) - first};
}

void TransposeColumn(ProductWork& work) {
  if (work.columns != 1 || work.rows == 1 || work.image.has_value()) return;
  std::swap(work.a, work.b);
  std::swap(work.rows, work.columns);
  work.output_columns = {{work.columns, {work.output_row_stride}}};
  work.output_row_stride = 0;
  if (work.addend.has_value()) std::swap(work.addend->row_stride, work.addend->column_stride);
  for (auto& dim : work.batches) std::swap(dim.strides[kProductA], dim.strides[kProductB]);
}

uint64_t CopiesOf(const ProductWork& work, ProductTensor tensor) {
  uint64_t count = 1;
  for (const auto& dim : work.batches) count *= dim.strides[tensor] == 0 ? 1 : dim.size;
  return count;
}

BatchPlace PlaceOf(const ProductWork& work, uint64_t index,
                   std::optional<ProductTensor> copies_of) {
  BatchPlace place;
  uint64_t copies = 1;
  uint64_t b_copies = 1;
  for (size_t d = work.batches.size(); d-- > 0;) {
    const auto& dim = work.batches[d];
    if (copies_of.has_value() && dim.strides[*copies_of] == 0) continue;
    const uint64_t at = index % dim.size;
    index /= dim.size;
    Advance(place.offsets, dim, at);
    if (dim.strides[kProductA] != 0) {
      place.copy += at * copies;
      copies *= dim.size;
    }
    if (dim.strides[kProductB] != 0) {
      place.b_copy += at * b_copies;
      b_copies *= dim.size;
    }
  }
  return place;
}

ProductCut CutOf(const ProductWork& work, const MatrixKernels& kernels, ProductScratch& scratch) {
  ProductCut cut;
  cut.panel_rows = EvenPart(work.rows, kernels.panel_rows);
  cut.row_panels = CeilDiv(work.rows, cut.panel_rows);
  cut.block_depth = work.depth == 0 ? 1 : EvenPart(work.depth, kBlockDepth);
  cut.method = MethodOf(work, cut);
  if (cut.method == ProductMethod::kTiles) {
    CutTiles(work, kernels, cut);
    cut.tasks = TasksOf(work, cut);
    PackFirst(work, TiledFloats(work, cut), cut, scratch);
    TransformFirst(work, kernels, cut, scratch);
    return cut;
  }
  cut.has_row_lanes = HasRowLanes(work, kernels, cut);
  if (cut.has_row_lanes) {
    cut.panel_rows = kernels.panel_columns;
    cut.row_panels = CeilDiv(work.rows, cut.panel_rows);
  } else {
    cut.has_direct_a = HasDirectA(work);
    cut.has_direct_b = HasDirectB(work, cut);
  }
  cut.rows = work.rows;
  const uint64_t depth = std::max<uint64_t>(work.depth, 1);
  const bool reads_b_once = cut.method == ProductMethod::kRow || cut.method == ProductMethod::kDots;
  const bool has_lines = cut.method == ProductMethod::kLines;
  const bool has_few_rows = !work.image.has_value() && work.rows <= kFewRows;
  const uint64_t least_products = reads_b_once   ? kLeastRowProducts
                                  : has_few_rows ? kLeastFewRowProducts
                                                 : kLeastTaskProducts;
  const bool is_window = cut.method == ProductMethod::kWindow;
  if (is_window) cut.window = WindowOf(work, kernels);
  cut.columns = work.columns;
  if (!is_window) {
    const bool is_packed = cut.method == ProductMethod::kPanels && !cut.has_direct_b &&
                           (!cut.has_row_lanes || work.image.has_value());
    const uint64_t most = is_packed ? kBlockElements / cut.block_depth : kMostColumns;
    const uint64_t wanted = RoundUp(kLeastTaskProducts / (work.rows * depth) + 1, kPanelColumns);
    cut.columns = std::min(work.columns, std::clamp(wanted, kLeastColumns,
                                                    std::clamp(most / kPanelColumns * kPanelColumns,
                                                               kLeastColumns, kMostColumns)));
    const uint64_t even = RoundUp(EvenPart(work.columns, cut.columns), kPanelColumns);
    if (!has_lines) cut.columns = std::min(work.columns, even);
  }
  if (has_lines) {
    const uint64_t taps = work.image->taps.size();
    cut.block_depth = EvenPart(work.depth / taps, kBlockDepth / taps) * taps;
    CutLines(work, kernels, cut.columns, cut);
  }
  const uint64_t wanted_tasks = has_lines ? kWantedLineTasks : kWantedTasks;
  const auto products = [&] { return cut.rows * cut.columns * depth; };
  const auto half_rows = [&] { return RoundUp(CeilDiv(cut.rows, 2), cut.panel_rows); };
  const auto half_columns = [&] { return RoundUp(CeilDiv(cut.columns, 2), kPanelColumns); };
  while (products() > kMostTaskProducts && cut.rows > 4 * cut.panel_rows) {
    // Tasks pack their columns of B: square ones pack and read the least.
    if (cut.method == ProductMethod::kPanels && cut.rows <= cut.columns &&
        cut.columns >= 2 * kPanelColumns) {
      cut.columns = half_columns();
    } else {
      cut.rows = half_rows();
    }
  }
  const auto can_cut_columns = [&] {
    if (has_lines) return cut.columns > 4 * kPanelColumns && cut.band_lines > 1;
    return !is_window && cut.columns > kPanelColumns;
  };
  // The longer side, so that tasks share as little of A and B as possible, unless its parts would
  // be less equal. Of lines the columns, because copying lines takes longer than reading A.
  const auto prefers_rows = [&] {
    if (has_lines && !cut.has_row_lanes) return false;
    if (!has_lines) {
      constexpr double kLittle = 0.05;
      const double more = UnevennessOf(work.rows, cut.panel_rows, half_rows()) -
                          UnevennessOf(work.columns, kPanelColumns, half_columns());
      if (std::abs(more) > kLittle) return more < 0;
    }
    return cut.rows > cut.columns;
  };
  const bool is_short_row = reads_b_once && products() < kLeastCutRowProducts;
  while (TasksOf(work, cut) < wanted_tasks && products() >= 2 * least_products && !is_short_row) {
    const bool can_cut_rows = cut.rows > (cut.has_row_lanes ? 1 : 4) * cut.panel_rows;
    if (can_cut_rows && (!can_cut_columns() || prefers_rows())) {
      cut.rows = half_rows();
    } else if (!can_cut_columns()) {
      break;
    } else if (has_lines) {
      CutLines(work, kernels, CeilDiv(cut.columns, 2), cut);
    } else {
      cut.columns = half_columns();
    }
  }
  if (cut.rows == work.rows && ColumnPartsOf(work, cut) == 1) {
    const uint64_t batches = CountOf(work.batches);
    cut.batches =
        std::clamp<uint64_t>(kLeastTaskProducts / products(), 1, CeilDiv(batches, kWantedTasks));
  }
  if (is_window) CutLines(work, kernels, kWindowColumns, cut);
  if (has_lines || is_window) cut.lines = ImageLines(*work.image, cut.band_lines);
  cut.tasks = TasksOf(work, cut);
  PlacePackedA(work, cut, scratch);
  return cut;
}

}  // namespace opmill
