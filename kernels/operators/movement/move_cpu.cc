#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/rounding.h"
#include "kernels/cpu/cpu_program.h"
#include "kernels/cpu/element_dispatch.h"
#include "kernels/cpu/gather.h"
#include "kernels/operators/movement/move.h"

namespace opmill {
namespace {

constexpr uint64_t kTaskElements = uint64_t{1} << 16;

// Steps of a row, from the first on, whose positions follow one another.
struct StepRun {
  std::optional<uint64_t> position;  // nullopt: all are outside of the input
  uint64_t length = 1;
};

StepRun RunOf(const MoveDim& row, uint64_t step, uint64_t end) {
  const auto started = static_cast<uint64_t>(row.start + static_cast<int64_t>(step));
  const auto until = [&](uint64_t length) { return std::min(length, end - step); };
  const std::optional<uint64_t> position = PositionOf(row, step);
  switch (row.rule) {
    case MoveRule::kPlain:
      return {position, end - step};
    case MoveRule::kConstant:
      if (position.has_value()) return {position, until(row.input_size - *position)};
      return {position, static_cast<int64_t>(started) < 0 ? until(-started) : end - step};
    case MoveRule::kEdge:
      return {position, started == *position ? until(row.input_size - *position) : 1};
    case MoveRule::kWrap:
      return {position, until(row.input_size - *position)};
    case MoveRule::kMirror:
      if (started / row.period % 2 == 1) break;
      return {position, until(row.period - started % row.period)};
    default:
      break;
  }
  return {position, 1};
}

// The positions of all steps, if each is another one.
std::vector<uint32_t> NearestOf(const MoveDim& row) {
  std::vector<uint32_t> positions;
  if (row.rule != MoveRule::kNearest || row.size > kTaskElements) return positions;
  for (uint64_t step = 0; step < row.size; ++step) {
    positions.push_back(static_cast<uint32_t>(*PositionOf(row, step)));
  }
  return positions;
}

// Moves row by row; a row is the last dimension of the walk.
class MoveProgram : public CpuProgram {
 public:
  MoveProgram(std::vector<Move> moves, const OperatorDesc& desc)
      : moves_(std::move(moves)), bytes_(ElementBytes(desc.outputs[0]->data_type)) {
    for (size_t i = 0; i < moves_.size(); ++i) {
      Move& move = moves_[i];
      Simplify(move);
      index_types_.push_back(desc.inputs[move.index_input].data_type);
      nearest_.push_back(NearestOf(move.dims.back()));
      const uint64_t length = move.dims.back().size;
      const uint64_t rows = CountOf(move.dims) / length;
      const uint64_t parts = CeilDiv(length, kTaskElements);
      Phase phase = {.move = i,
                     .rows = rows,
                     .rows_a_task = std::max<uint64_t>(1, kTaskElements / length),
                     .parts = parts};
      // Of writes to one place the last one along a row remains, so its parts follow one another.
      const uint64_t turns = move.index == MoveIndex::kDestination ? parts : 1;
      for (uint64_t turn = 0; turn < turns; ++turn) {
        phase.first_part = turn;
        phase.parts = parts / turns;
        phase.tasks = CeilDiv(rows, phase.rows_a_task) * phase.parts;
        steps_.push_back(phase);
        phases_.push_back(phase.tasks);
      }
      overwrites_ = overwrites_ || move.index == MoveIndex::kDestination;
      cost_bytes_ += 2 * rows * length * bytes_;
    }
    is_short_ = cost_bytes_ <= 2 * kTaskElements * bytes_;
    const uint64_t tasks = std::accumulate(phases_.begin(), phases_.end(), uint64_t{0});
    if (is_short_ || !overwrites_) phases_ = {is_short_ ? 1 : tasks};
  }

  void Run(size_t phase, uint64_t task, const RunBuffers& buffers) const override {
    if (is_short_) {
      for (const Phase& step : steps_) {
        for (uint64_t each = 0; each < step.tasks; ++each) RunTask(step, each, buffers);
      }
      return;
    }
    while (!overwrites_ && task >= steps_[phase].tasks) task -= steps_[phase++].tasks;
    RunTask(steps_[phase], task, buffers);
  }

 private:
  struct Phase {
    size_t move = 0;
    uint64_t rows = 1;
    uint64_t rows_a_task = 1;
    uint64_t first_part = 0;
    uint64_t parts = 1;  // of each row
    uint64_t tasks = 1;
  };

  void RunTask(const Phase& step, uint64_t task, const RunBuffers& buffers) const {
    const Move& move = moves_[step.move];
    const MoveDim& row = move.dims.back();
    const uint64_t first = (step.first_part + task % step.parts) * kTaskElements;
    const uint64_t end = std::min(first + kTaskElements, row.size);
    const uint64_t begin = task / step.parts * step.rows_a_task;
    for (uint64_t r = begin; r < std::min(begin + step.rows_a_task, step.rows); ++r) {
      MovePlace place(move);
      uint64_t rest = r;
      for (size_t d = move.dims.size() - 1; d-- > 0;) {
        place.Add(move.dims[d], rest % move.dims[d].size);
        rest /= move.dims[d].size;
      }
      MoveRow(step.move, place, first, end, buffers);
    }
  }

  // Steps [first, end) of the row that begins there.
  void MoveRow(size_t number, MovePlace place, uint64_t first, uint64_t end,
               const RunBuffers& buffers) const {
    const Move& move = moves_[number];
    const MoveDim& row = move.dims.back();
    const std::byte* const input = buffers.inputs[move.input];
    const std::byte* const indices = buffers.inputs[move.index_input];
    std::byte* const output = buffers.outputs[0];
    if (row.strides[kIndicesTensor] != 0 || !HasPositions(row)) {
      for (uint64_t step = first; step < end; ++step) {
        MovePlace at = place;
        at.Add(row, step);
        if (!at.Follow(move, index_types_[number], indices)) continue;
        std::byte* const to = output + at.offsets[kOutputTensor] * bytes_;
        if (at.IsConstant(move)) {
          Fill(move.constant, to, 1, 1);
        } else {
          CopyElement(to, input + at.offsets[kInputTensor] * bytes_, bytes_);
        }
      }
      return;
    }
    if (!place.Follow(move, index_types_[number], indices)) return;
    const bool is_constant = place.IsConstant(move);
    const uint64_t from_stride = row.strides[kInputTensor];
    const uint64_t to_stride = row.strides[kOutputTensor];
    if (!nearest_[number].empty() && !is_constant) {
      WithWordOf(bytes_, [&](auto word) {
        using Word = decltype(word);
        const auto* const from = reinterpret_cast<const Word*>(input) + place.offsets[kInputTensor];
        auto* const to = reinterpret_cast<Word*>(output) + place.offsets[kOutputTensor];
        for (uint64_t step = first; step < end; ++step) {
          to[step * to_stride] = from[nearest_[number][step] * from_stride];
        }
      });
      return;
    }
    for (uint64_t step = first; step < end;) {
      const StepRun run = is_constant ? StepRun{{}, end - step} : RunOf(row, step, end);
      std::byte* const to = output + (place.offsets[kOutputTensor] + step * to_stride) * bytes_;
      if (run.position.has_value()) {
        const uint64_t from = place.offsets[kInputTensor] + *run.position * from_stride;
        Copy(input + from * bytes_, from_stride, to, to_stride, run.length);
      } else {
        Fill(move.constant, to, to_stride, run.length);
      }
      step += run.length;
    }
  }

  // Strides may wrap.
  void Copy(const std::byte* from, uint64_t from_stride, std::byte* to, uint64_t to_stride,
            uint64_t count) const {
    if (from_stride == 1 && to_stride == 1) {
      std::memcpy(to, from, count * bytes_);
      return;
    }
    WithWordOf(bytes_, [&](auto word) {
      using Word = decltype(word);
      const auto* source = reinterpret_cast<const Word*>(from);
      auto* place = reinterpret_cast<Word*>(to);
      for (uint64_t i = 0; i < count; ++i) {
        place[i * to_stride] = source[static_cast<int64_t>(i * from_stride)];
      }
    });
  }

  void Fill(uint64_t constant, std::byte* to, uint64_t stride, uint64_t count) const {
    WithWordOf(bytes_, [&](auto word) {
      using Word = decltype(word);
      auto* place = reinterpret_cast<Word*>(to);
      for (uint64_t i = 0; i < count; ++i) place[i * stride] = static_cast<Word>(constant);
    });
  }

  std::vector<Move> moves_;
  std::vector<DataType> index_types_;  // of the moves
  std::vector<std::vector<uint32_t>> nearest_;
  std::vector<Phase> steps_;
  bool is_short_ = false;    // one task does all steps
  bool overwrites_ = false;  // each step has a phase; otherwise they share one
  const uint32_t bytes_;
};

}  // namespace

std::unique_ptr<CpuProgram> CpuMovement(const OperatorDesc& desc) {
  return std::make_unique<MoveProgram>(MovesOf(desc), desc);
}

}  // namespace opmill
