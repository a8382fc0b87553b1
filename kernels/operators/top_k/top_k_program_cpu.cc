#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/cpu/element_dispatch.h"
#include "kernels/cpu/gather.h"
#include "kernels/cpu/task_memory.h"
#include "kernels/operators/top_k/top_k_kernels.h"
#include "kernels/operators/top_k/top_k_program.h"

namespace opmill {
namespace {

constexpr uint64_t kChunk = uint64_t{1} << 20;  // the most elements of a sequence in one task
constexpr uint64_t kLeastTaskElements = uint64_t{1} << 16;
constexpr uint64_t kTasks = 64;
constexpr uint64_t kGatheredBytes = uint64_t{1} << 20;
// Columns are filtered in place only if k is at most this part of them; else most elements pass.
constexpr uint64_t kColumnShare = 16;
constexpr uint64_t kMostGathered = 16;  // adjacent sequences: a cache line of 4-byte elements

// A task selects from one sequence or from several. Long sequences are split into chunks, whose
// lists are merged in pairs, one phase per round. If the elements of a sequence are not adjacent,
// several sequences are gathered together.
class TopKProgram : public CpuProgram {
 public:
  explicit TopKProgram(TopKWork work)
      : work_(std::move(work)),
        kernels_(TopKKernelsOf(work_.type, work_.largest)),
        element_bytes_(ElementBytes(work_.type)),
        candidate_bytes_(CandidateBytes(work_.type)) {
    SortByStride(work_.kept, kInputTensor);
    MergeDims(work_.kept);
    sequences_ = CountOf(work_.kept);
    const uint64_t size = work_.axis.size;
    const uint64_t elements = sequences_ * size;
    chunk_ =
        size <= 2 * kChunk || sequences_ >= kTasks ? size : std::max(kChunk, work_.ranks.size * 2);
    chunks_ = CeilDiv(size, chunk_);
    const uint64_t task = std::clamp(elements / kTasks, kLeastTaskElements, kChunk);
    if (chunks_ == 1) group_ = std::clamp<uint64_t>(task / size, 1, sequences_);
    const uint64_t line = work_.kept.empty() ? 0 : work_.kept.back().size;
    columns_ = chunks_ == 1 && line >= 16 && work_.kept.back().strides[kInputTensor] == 1 &&
               work_.ranks.size <= size / kColumnShare && work_.axis.strides[kInputTensor] > 0;
    if (columns_) group_ = std::min<uint64_t>(line, kMostTopKColumns);
    groups_per_line_ = columns_ ? CeilDiv(line, group_) : CeilDiv(sequences_, group_);
    lines_ = columns_ ? sequences_ / line : 1;
    gathered_ = columns_ || work_.axis.strides[kInputTensor] == 1 || size == 1
                    ? 0
                    : std::clamp<uint64_t>(kGatheredBytes / (chunk_ * element_bytes_), 1,
                                           std::min(group_, kMostGathered));
    phases_.push_back(lines_ * groups_per_line_ * chunks_);
    task_bytes_ = columns_ ? group_ * TopKRoom(size, work_.ranks.size) * candidate_bytes_
                           : TopKRoom(chunk_, work_.ranks.size) * candidate_bytes_ +
                                 gathered_ * Pitch(chunk_) * element_bytes_;
    list_bytes_ = work_.ranks.size * candidate_bytes_;
    if (chunks_ > 1) {
      for (uint64_t lists = chunks_; lists > 1; lists = CeilDiv(lists, 2)) {
        phases_.push_back(sequences_ * CeilDiv(lists, 2));
      }
      phases_.push_back(sequences_);
      scratch_bytes_ = 2 * sequences_ * chunks_ * list_bytes_;
    }
    cost_bytes_ =
        elements * element_bytes_ * (size > 64 ? 4 : 2) + sequences_ * work_.ranks.size * 64;
  }

  void Run(size_t phase, uint64_t task, const RunBuffers& buffers) const override {
    if (phase == 0 && columns_) {
      SelectColumns(task, buffers);
    } else if (phase == 0) {
      Select(task, buffers);
    } else if (phase + 1 < phases_.size()) {
      MergeLists(phase, task, buffers);
    } else {
      Store(List(buffers, phase - 1, task, 0), task, buffers);
    }
  }

 private:
  void SelectColumns(uint64_t task, const RunBuffers& buffers) const {
    const uint64_t line = sequences_ / lines_;
    const uint64_t at = task % groups_per_line_ * group_;
    const uint64_t width = std::min(group_, line - at);
    const uint64_t first = task / groups_per_line_ * line + at;
    const uint64_t room = TopKRoom(work_.axis.size, work_.ranks.size);
    TaskMemory::Scope memory;
    std::byte* candidates = memory.Take(width * room * candidate_bytes_);
    kernels_.select_columns(
        buffers.inputs[0] + Walk(work_.kept, first).offset(kInputTensor) * element_bytes_, width,
        work_.axis.size, work_.axis.strides[kInputTensor], work_.ranks.size, candidates, room);
    for (uint64_t i = 0; i < width; ++i) {
      Store(candidates + i * room * candidate_bytes_, first + i, buffers);
    }
  }

  void Select(uint64_t task, const RunBuffers& buffers) const {
    const uint64_t chunk = task % chunks_;
    const uint64_t first = task / chunks_ * group_;
    const uint64_t end = std::min(first + group_, sequences_);
    const uint64_t begin = chunk * chunk_;
    const uint64_t count = std::min(chunk_, work_.axis.size - begin);
    const uint64_t room = TopKRoom(count, work_.ranks.size);
    TaskMemory::Scope memory;
    std::byte* candidates = memory.Take(room * candidate_bytes_);
    std::byte* gathered = memory.Take(gathered_ * Pitch(count) * element_bytes_);
    Walk kept(work_.kept, first);
    for (uint64_t sequence = first; sequence < end;) {
      const uint64_t width = std::min(std::max<uint64_t>(gathered_, 1), end - sequence);
      if (gathered_ > 0) GatherSequences(buffers.inputs[0], kept, width, begin, count, gathered);
      for (uint64_t i = 0; i < width; ++i, ++sequence, kept.Next()) {
        const std::byte* elements =
            gathered_ > 0
                ? gathered + i * Pitch(count) * element_bytes_
                : buffers.inputs[0] + (kept.offset(kInputTensor) + begin) * element_bytes_;
        kernels_.select(elements, count, begin, work_.ranks.size, candidates, room);
        if (chunks_ > 1) {
          std::memcpy(List(buffers, 0, sequence, chunk), candidates,
                      std::min(count, work_.ranks.size) * candidate_bytes_);
        } else {
          Store(candidates, sequence, buffers);
        }
      }
    }
  }

  // The distance of gathered sequences. Not a power of two, which would put all of them into the
  // same sets of the cache.
  static uint64_t Pitch(uint64_t count) { return CeilDiv(count, 64) * 64 + 16; }

  // `kept` is at the first sequence.
  void GatherSequences(const std::byte* input, SpaceWalk kept, uint64_t width, uint64_t begin,
                       uint64_t count, std::byte* gathered) const {
    uint64_t rows[kMostGathered];
    for (uint64_t i = 0; i < width; ++i, kept.Next()) rows[i] = kept.offset(kInputTensor);
    constexpr uint64_t kStretch = 256;
    uint64_t columns[kStretch];
    for (uint64_t at = 0; at < count; at += kStretch) {
      const uint64_t stretch = std::min(kStretch, count - at);
      for (uint64_t i = 0; i < stretch; ++i)
        columns[i] = (begin + at + i) * work_.axis.strides[kInputTensor];
      Gather(input, gathered + at * element_bytes_, {columns, stretch}, {rows, width}, Pitch(count),
             element_bytes_);
    }
  }

  // The lists of a sequence are adjacent. Rounds alternate between reading one half of the scratch
  // and writing the other.
  std::byte* List(const RunBuffers& buffers, uint64_t round, uint64_t sequence,
                  uint64_t list) const {
    const uint64_t half = round % 2 * (scratch_bytes_ / 2);
    return buffers.scratch + half + (sequence * chunks_ + list) * list_bytes_;
  }

  // The number of candidates in a list of this round, which was merged from 2^round chunks.
  uint64_t ListSize(uint64_t round, uint64_t list) const {
    const uint64_t begin = std::min((list << round) * chunk_, work_.axis.size);
    const uint64_t end = std::min(((list + 1) << round) * chunk_, work_.axis.size);
    return std::min(work_.ranks.size, end - begin);
  }

  void MergeLists(uint64_t round, uint64_t task, const RunBuffers& buffers) const {
    const uint64_t merged = phases_[round] / sequences_;
    const uint64_t sequence = task / merged;
    const uint64_t list = task % merged;
    const uint64_t second = ListSize(round - 1, 2 * list + 1);
    kernels_.merge(List(buffers, round - 1, sequence, 2 * list), ListSize(round - 1, 2 * list),
                   second == 0 ? nullptr : List(buffers, round - 1, sequence, 2 * list + 1), second,
                   work_.ranks.size, List(buffers, round, sequence, list));
  }

  void Store(const std::byte* candidates, uint64_t sequence, const RunBuffers& buffers) const {
    WithWordOf(element_bytes_,
               [&](auto word) { StoreAs<decltype(word)>(candidates, sequence, buffers); });
  }

  // Reads the values again, because keys do not have all of their bits.
  template <class T>
  void StoreAs(const std::byte* candidates, uint64_t sequence, const RunBuffers& buffers) const {
    const Walk kept(work_.kept, sequence);
    const T* input = reinterpret_cast<const T*>(buffers.inputs[0]) + kept.offset(kInputTensor);
    T* values = reinterpret_cast<T*>(buffers.outputs[0]) + kept.offset(kOutputTensor);
    constexpr uint64_t kBatch = 256;
    uint64_t places[kBatch];
    for (uint64_t at = 0; at < work_.ranks.size; at += kBatch) {
      const uint64_t count = std::min(kBatch, work_.ranks.size - at);
      kernels_.places(candidates + at * candidate_bytes_, count, places);
      for (uint64_t i = 0; i < count; ++i) {
        values[(at + i) * work_.ranks.strides[kOutputTensor]] =
            input[places[i] * work_.axis.strides[kInputTensor]];
      }
      const uint64_t index = kept.offset(kIndicesTensor) + at * work_.ranks.strides[kIndicesTensor];
      if (work_.index_bytes == 4) {
        auto* indices = reinterpret_cast<uint32_t*>(buffers.outputs[1]) + index;
        for (uint64_t i = 0; i < count; ++i) {
          indices[i * work_.ranks.strides[kIndicesTensor]] = static_cast<uint32_t>(places[i]);
        }
      } else {
        auto* indices = reinterpret_cast<uint64_t*>(buffers.outputs[1]) + index;
        for (uint64_t i = 0; i < count; ++i)
          indices[i * work_.ranks.strides[kIndicesTensor]] = places[i];
      }
    }
  }

  TopKWork work_;
  const TopKKernels kernels_;
  const uint32_t element_bytes_;
  const uint64_t candidate_bytes_;
  uint64_t sequences_ = 1;
  uint64_t chunk_ = 1;
  uint64_t chunks_ = 1;
  uint64_t group_ = 1;    // sequences of a task
  bool columns_ = false;  // whether the sequences of a group are adjacent
  uint64_t groups_per_line_ = 1;
  uint64_t lines_ = 1;
  uint64_t gathered_ = 0;  // sequences gathered at a time; 0: they are read in place
  uint64_t list_bytes_ = 0;
};

}  // namespace

std::unique_ptr<CpuProgram> MakeTopKProgram(TopKWork work) {
  return std::make_unique<TopKProgram>(std::move(work));
}

}  // namespace opmill
