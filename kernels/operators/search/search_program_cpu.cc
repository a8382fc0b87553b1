#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/base/rounding.h"
#include "kernels/cpu/cpu_program.h"
#include "kernels/operators/search/search_desc.h"
#include "kernels/operators/search/search_kernels.h"

namespace opmill {
namespace {

// Of a task, in products of two elements and in elements of the vectors.
constexpr uint64_t kTaskProducts = uint64_t{1} << 24;
constexpr uint64_t kTaskElements = uint64_t{1} << 20;
// Tasks of a step. Each has lists of its own.
constexpr uint64_t kMostStripes = 64;
constexpr uint64_t kFewStripes = 16;
// A group's packed queries stay in the second cache.
constexpr uint64_t kPackedBytes = uint64_t{768} << 10;
constexpr uint64_t kLeastGroup = 64;
constexpr uint64_t kMostGroup = 1024;
constexpr uint64_t kListBytes = uint64_t{24} << 20;
constexpr uint64_t kListSlack = 64;  // candidates beyond twice k
constexpr uint64_t kFinishQueries = 8;

enum class StepKind : uint32_t { kPack, kScan, kTighten, kFinish };

// A phase of each group of queries.
struct Step {
  StepKind kind = StepKind::kPack;
  uint64_t first_row = 0;  // kScan
  uint64_t rows = 0;       // kScan: of all tasks
  uint64_t task_rows = 0;  // kScan: of all tasks but the last
};

// Queries are packed in groups. The vectors are scanned in steps; the tasks of a step scan
// consecutive rows, each with a list of candidates for each query. What is in a list when its task
// begins has lower rows, so that of equal scores the first remain. Now and then, lists are compared
// to find what the k-th best of all is so far.
class SearchProgram : public CpuProgram {
 public:
  explicit SearchProgram(const SearchDesc& desc)
      : desc_(desc),
        kernels_(SearchKernelsOf(desc.queries.data_type)),
        work_(WorkOf(desc, kernels_)) {
    const uint64_t queries = desc_.queries.sizes[0];
    const uint64_t vectors = desc_.vectors.sizes[0];
    const uint64_t query_bytes = work_.room * sizeof(uint64_t) + 3 * sizeof(uint32_t);
    uint64_t group = std::clamp(kPackedBytes / (work_.words() * 4), kLeastGroup, kMostGroup);
    group = std::min(group, std::max<uint64_t>(1, kListBytes / (kFewStripes * query_bytes)));
    group_ = EvenPart(queries, group);
    task_rows_ = std::min(kTaskProducts / (group_ * work_.dims), kTaskElements / work_.dims);
    task_rows_ = RoundUp(std::max<uint64_t>(task_rows_, 1), kSearchRows);
    stripes_ = std::min({CeilDiv(vectors, task_rows_), kMostStripes,
                         std::max<uint64_t>(1, kListBytes / (group_ * query_bytes))});
    panels_ = SearchPanels(static_cast<uint32_t>(group_), kernels_.lanes, work_.words());
    if (queries % group_ != 0) {
      last_panels_ =
          SearchPanels(static_cast<uint32_t>(queries % group_), kernels_.lanes, work_.words());
    }
    PlanSteps(vectors);
    for (uint64_t g = 0; g < CeilDiv(queries, group_); ++g) {
      for (const Step& step : steps_) phases_.push_back(TasksOf(step, g));
    }
    PlaceScratch();
    task_bytes_ = kSearchRows * work_.words() * sizeof(uint32_t);
    cost_bytes_ = SpannedBytes(desc_.vectors) + queries * vectors * work_.dims / 4;
  }

  void Run(size_t phase, uint64_t task, const RunBuffers& buffers) const override {
    const uint64_t group = phase / steps_.size();
    const Step& step = steps_[phase % steps_.size()];
    switch (step.kind) {
      case StepKind::kPack:
        return Pack(group, task, buffers);
      case StepKind::kScan:
        return ScanStripe(group, step, task, buffers);
      case StepKind::kTighten:
      case StepKind::kFinish:
        return Compare(group, step.kind, task, buffers);
    }
  }

 private:
  static SearchWork WorkOf(const SearchDesc& desc, const SearchKernels& kernels) {
    const std::vector<uint32_t> strides = EffectiveStrides(desc.vectors);
    SearchWork work = {
        .type = desc.queries.data_type,
        .metric = desc.metric,
        .dims = desc.queries.sizes[1],
        .k = desc.k,
        .row_stride = strides[0],
        .element_stride = strides[1],
        .room = std::min<uint64_t>(2 * uint64_t{desc.k} + kListSlack, desc.vectors.sizes[0]),
        .per_word = kernels.per_word};
    if (desc.mask.has_value()) {
      const std::vector<uint32_t> of_mask = EffectiveStrides(*desc.mask);
      work.mask_query_stride = desc.mask->sizes[0] == 1 ? 0 : of_mask[0];
      work.mask_row_stride = of_mask[1];
    }
    return work;
  }

  // Steps grow until tasks have their size, so that the first candidates are soon compared.
  void PlanSteps(uint64_t vectors) {
    steps_.push_back({.kind = StepKind::kPack});
    uint64_t rows = task_rows_;
    if (stripes_ > 1) {
      rows = std::min(rows, RoundUp(CeilDiv(2 * uint64_t{work_.k}, stripes_), kSearchRows));
    }
    uint64_t compared = 0;
    for (uint64_t first = 0; first < vectors;) {
      const uint64_t count = std::min(rows * stripes_, vectors - first);
      const uint64_t task_rows = RoundUp(CeilDiv(count, stripes_), kSearchRows);
      steps_.push_back({StepKind::kScan, first, count, task_rows});
      first += count;
      rows = std::min(4 * rows, task_rows_);
      if (stripes_ > 1 && first < vectors && first >= 3 * compared && first >= work_.k) {
        steps_.push_back({.kind = StepKind::kTighten});
        compared = first;
      }
    }
    steps_.push_back({.kind = StepKind::kFinish});
  }

  uint64_t TasksOf(const Step& step, uint64_t group) const {
    if (step.kind == StepKind::kPack) return PanelsOf(group).size();
    if (step.kind == StepKind::kScan) return CeilDiv(step.rows, step.task_rows);
    return CeilDiv(QueriesOf(group), kFinishQueries);
  }
  uint32_t QueriesOf(uint64_t group) const {
    return static_cast<uint32_t>(std::min(group_, desc_.queries.sizes[0] - group * group_));
  }
  const std::vector<SearchPanel>& PanelsOf(uint64_t group) const {
    return QueriesOf(group) == group_ ? panels_ : last_panels_;
  }
  static uint64_t PaddedOf(const std::vector<SearchPanel>& panels) {
    return panels.empty() ? 0 : panels.back().first + panels.back().width;
  }

  uint64_t Reserve(uint64_t bytes) {
    const uint64_t at = scratch_bytes_;
    scratch_bytes_ += RoundUp(bytes, 64);
    return at;
  }
  void PlaceScratch() {
    padded_ = std::max(PaddedOf(panels_), PaddedOf(last_panels_));
    packed_at_ = Reserve(padded_ * work_.words() * sizeof(uint32_t));
    if (work_.rescores()) rows_at_ = Reserve(group_ * work_.dims * sizeof(float));
    norms_at_ = Reserve(padded_ * sizeof(float));
    least_at_ = Reserve(group_ * sizeof(uint32_t));
    compared_at_ =
        Reserve(CeilDiv(group_, kFinishQueries) * stripes_ * work_.room * sizeof(uint64_t));
    lists_at_ = scratch_bytes_;
    Reserve(group_ * work_.room * sizeof(uint64_t));
    counts_at_ = Reserve(group_ * sizeof(uint32_t)) - lists_at_;
    own_least_at_ = Reserve(group_ * sizeof(uint32_t)) - lists_at_;
    limits_at_ = Reserve(padded_ * sizeof(float)) - lists_at_;
    stripe_bytes_ = scratch_bytes_ - lists_at_;
    scratch_bytes_ += (stripes_ - 1) * stripe_bytes_;
  }

  template <class T>
  static T* At(const RunBuffers& buffers, uint64_t offset) {
    return reinterpret_cast<T*>(buffers.scratch + offset);
  }
  SearchLists ListsOf(uint64_t stripe, const RunBuffers& buffers) const {
    const uint64_t at = lists_at_ + stripe * stripe_bytes_;
    return {.candidates = At<uint64_t>(buffers, at),
            .counts = At<uint32_t>(buffers, at + counts_at_),
            .least = At<uint32_t>(buffers, at + own_least_at_),
            .limits = At<float>(buffers, at + limits_at_)};
  }

  // Packs the queries of a panel, and empties their lists.
  void Pack(uint64_t group, uint64_t task, const RunBuffers& buffers) const {
    const SearchPanel& panel = PanelsOf(group)[task];
    const std::vector<uint32_t> strides = EffectiveStrides(desc_.queries);
    const uint64_t words = work_.words();
    for (uint32_t lane = 0; lane < panel.width; ++lane) {
      const uint32_t query = panel.first + lane;
      const bool is_query = query < QueriesOf(group);
      const uint64_t from = is_query ? (group * group_ + query) * strides[0] : 0;
      double squares = 0;
      for (uint64_t i = 0; i < words; ++i) {
        uint32_t word = 0;
        if (is_query && work_.is_int8()) {
          word = Int8Word(reinterpret_cast<const int8_t*>(buffers.inputs[0]) + from, strides[1], i,
                          squares);
        } else if (is_query) {
          const float element = FloatAt(buffers.inputs[0], from + i * strides[1]);
          squares += double{element} * double{element};
          word = std::bit_cast<uint32_t>(element);
          if (work_.rescores()) At<float>(buffers, rows_at_)[query * work_.dims + i] = element;
        }
        At<uint32_t>(buffers, packed_at_)[panel.offset + i * panel.width + lane] = word;
      }
      SetNorm(query, squares, buffers);
      if (is_query) At<uint32_t>(buffers, least_at_)[query] = 0;
      for (uint64_t stripe = 0; stripe < stripes_; ++stripe) {
        const SearchLists lists = ListsOf(stripe, buffers);
        if (is_query) {
          lists.counts[query] = 0;
          SetLeast(lists, query, 0, buffers);
        } else if (work_.is_exact()) {  // so that nothing is found for it
          static_cast<int32_t*>(lists.limits)[query] = std::numeric_limits<int32_t>::max();
        } else {
          static_cast<float*>(lists.limits)[query] = std::numeric_limits<float>::infinity();
        }
      }
    }
  }
  // Adds the squares of its elements.
  uint32_t Int8Word(const int8_t* query, uint64_t stride, uint64_t index, double& squares) const {
    uint32_t word = 0;
    for (uint32_t j = 0; j < work_.per_word; ++j) {
      const uint64_t at = index * work_.per_word + j;
      const int32_t element = at < work_.dims ? query[at * stride] : 0;
      squares += element * element;
      word |= work_.per_word == kSearchPair ? (static_cast<uint32_t>(element) & 0xFFFF) << 16 * j
                                            : static_cast<uint32_t>(element + 128) << 8 * j;
    }
    return word;
  }
  float FloatAt(const std::byte* input, uint64_t at) const {
    if (work_.type == DataType::kFloat32) return reinterpret_cast<const float*>(input)[at];
    return HalfToFloat(reinterpret_cast<const uint16_t*>(input)[at]);
  }
  void SetNorm(uint32_t query, double squares, const RunBuffers& buffers) const {
    if (work_.is_exact()) {
      At<int32_t>(buffers, norms_at_)[query] = static_cast<int32_t>(squares);
    } else if (work_.metric == SearchMetric::kCosine) {
      At<float>(buffers, norms_at_)[query] =
          squares == 0 ? 0.0f : static_cast<float>(1 / std::sqrt(squares));
    } else {
      At<float>(buffers, norms_at_)[query] = static_cast<float>(squares);
    }
  }
  void SetLeast(const SearchLists& lists, uint32_t query, uint32_t least,
                const RunBuffers& buffers) const {
    lists.least[query] = least;
    if (work_.is_exact()) {
      static_cast<int32_t*>(lists.limits)[query] =
          SearchLimit(work_, least, At<int32_t>(buffers, norms_at_)[query]);
    } else {
      static_cast<float*>(lists.limits)[query] =
          SearchLimit(work_, least, At<float>(buffers, norms_at_)[query]);
    }
  }

  void ScanStripe(uint64_t group, const Step& step, uint64_t task,
                  const RunBuffers& buffers) const {
    const SearchLists lists = ListsOf(task, buffers);
    const uint32_t* const least = At<uint32_t>(buffers, least_at_);
    const uint32_t queries = QueriesOf(group);
    for (uint32_t query = 0; query < queries; ++query) {
      if (least[query] > lists.least[query]) SetLeast(lists, query, least[query], buffers);
    }
    const uint64_t first = task * step.task_rows;
    const bool has_mask = desc_.mask.has_value();
    kernels_.scan({.work = &work_,
                   .panels = &PanelsOf(group),
                   .packed = At<uint32_t>(buffers, packed_at_),
                   .query_rows = At<float>(buffers, rows_at_),
                   .norms = At<float>(buffers, norms_at_),
                   .queries = queries,
                   .vectors = buffers.inputs[1],
                   .mask = has_mask ? reinterpret_cast<const uint8_t*>(buffers.inputs[2]) +
                                          group * group_ * work_.mask_query_stride
                                    : nullptr,
                   .first_row = step.first_row + first,
                   .rows = std::min(step.task_rows, step.rows - first),
                   .lists = lists});
  }

  // Finds the best of some queries in all lists: their least key, or their results.
  void Compare(uint64_t group, StepKind kind, uint64_t task, const RunBuffers& buffers) const {
    uint64_t* const all = At<uint64_t>(buffers, compared_at_) + task * stripes_ * work_.room;
    const auto first = static_cast<uint32_t>(task * kFinishQueries);
    const uint32_t end = std::min(first + static_cast<uint32_t>(kFinishQueries), QueriesOf(group));
    for (uint32_t query = first; query < end; ++query) {
      uint64_t count = 0;
      uint32_t& least = At<uint32_t>(buffers, least_at_)[query];
      const uint64_t lowest = uint64_t{least} << 32;
      for (uint64_t stripe = 0; stripe < stripes_; ++stripe) {
        const SearchLists lists = ListsOf(stripe, buffers);
        const uint64_t* const list = lists.candidates + query * work_.room;
        for (uint32_t i = 0; i < lists.counts[query]; ++i) {
          if (list[i] >= lowest) all[count++] = list[i];
        }
      }
      if (kind == StepKind::kFinish) {
        Store(group * group_ + query, all, count, buffers);
      } else if (count >= work_.k) {
        std::nth_element(all, all + work_.k - 1, all + count, std::greater<uint64_t>());
        least = static_cast<uint32_t>(all[work_.k - 1] >> 32);
      }
    }
  }

  void Store(uint64_t query, uint64_t* candidates, uint64_t count,
             const RunBuffers& buffers) const {
    const uint64_t found = std::min<uint64_t>(work_.k, count);
    std::partial_sort(candidates, candidates + found, candidates + count, std::greater<uint64_t>());
    const std::vector<uint32_t> score_strides = EffectiveStrides(*desc_.output_scores);
    const std::vector<uint32_t> index_strides = EffectiveStrides(*desc_.output_indices);
    uint32_t* const scores =
        reinterpret_cast<uint32_t*>(buffers.outputs[0]) + query * score_strides[0];
    uint32_t* const indices =
        reinterpret_cast<uint32_t*>(buffers.outputs[1]) + query * index_strides[0];
    const auto empty = static_cast<uint32_t>(EmptyScore(desc_));
    for (uint64_t i = 0; i < work_.k; ++i) {
      scores[i * score_strides[1]] =
          i < found ? ScoreOf(static_cast<uint32_t>(candidates[i] >> 32)) : empty;
      indices[i * index_strides[1]] = i < found ? ~static_cast<uint32_t>(candidates[i]) : kNotFound;
    }
  }
  uint32_t ScoreOf(uint32_t key) const {
    const bool is_negative = desc_.smallest_first();
    if (work_.is_exact()) {
      const int32_t score = IntOfSearchKey(key);
      return static_cast<uint32_t>(is_negative ? -score : score);
    }
    const float score = FloatOfSearchKey(key);
    return std::bit_cast<uint32_t>(is_negative ? 0.0f - score : score);
  }

  const SearchDesc desc_;
  const SearchKernels kernels_;
  const SearchWork work_;
  uint64_t group_ = 1;      // queries, of all groups but the last
  uint64_t task_rows_ = 1;  // at most
  uint64_t stripes_ = 1;    // tasks of a step
  std::vector<SearchPanel> panels_;
  std::vector<SearchPanel> last_panels_;  // of a smaller group
  std::vector<Step> steps_;
  // In scratch.
  uint64_t padded_ = 0;  // queries
  uint64_t packed_at_ = 0;
  uint64_t rows_at_ = 0;
  uint64_t norms_at_ = 0;
  uint64_t least_at_ = 0;
  uint64_t compared_at_ = 0;  // the lists of a query, for each task of kTighten and kFinish
  uint64_t lists_at_ = 0;
  uint64_t stripe_bytes_ = 0;
  // In the part of a stripe, behind its candidates.
  uint64_t counts_at_ = 0;
  uint64_t own_least_at_ = 0;
  uint64_t limits_at_ = 0;
};

}  // namespace

float SearchLimit(const SearchWork& work, uint32_t least, float norm) {
  constexpr float kAll = std::numeric_limits<float>::quiet_NaN();  // nothing is below it
  if (least == 0) return kAll;
  const float score = FloatOfSearchKey(least);
  if (!work.rescores()) return score;
  const double margin = SearchMargin(work.dims);
  const double limit = 0.5 * (double{norm} * (1 - margin) + double{score} * (1 + margin)) -
                       static_cast<double>(work.dims) * 0x1p-147;
  if (!std::isfinite(norm) || !std::isfinite(score)) return kAll;
  return std::nextafter(static_cast<float>(limit), -std::numeric_limits<float>::infinity());
}

int32_t SearchLimit(const SearchWork& work, uint32_t least, int32_t norm) {
  if (least == 0) return std::numeric_limits<int32_t>::min();
  const int32_t score = IntOfSearchKey(least);
  return work.metric == SearchMetric::kL2 ? score + norm : score;
}

std::vector<SearchPanel> SearchPanels(uint32_t queries, uint32_t lanes, uint64_t words) {
  const uint32_t least = std::max(lanes / 4, std::min(lanes, uint32_t{4}));
  std::vector<SearchPanel> panels;
  uint64_t offset = 0;
  for (uint32_t first = 0; first < queries;) {
    const uint32_t left = queries - first;
    uint32_t width = 2 * lanes;
    if (left <= lanes) {
      width = least;
      while (width < left) width *= 2;
    } else if (left < 2 * lanes - lanes / 4) {
      width = lanes;
    }
    panels.push_back({first, width, offset});
    offset += width * words;
    first += width;
  }
  return panels;
}

std::unique_ptr<CpuProgram> CpuSearch(const OperatorDesc& validated) {
  return std::make_unique<SearchProgram>(SearchDesc::From(validated));
}

}  // namespace opmill
