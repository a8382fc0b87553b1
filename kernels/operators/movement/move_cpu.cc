#include <algorithm>
#include <cstring>
#include <memory>
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
    uint64_t elements = 0;
    bool overwrites = false;  // whether a later piece may overwrite what an earlier one wrote
    for (Move& move : moves_) {
      Simplify(move);
      index_types_.push_back(desc.inputs[move.index_input].data_type);
      nearest_.push_back(NearestOf(move.dims.back()));
      elements += CountOf(move.dims);
      overwrites = overwrites || move.index == MoveIndex::kDestination;
    }
    cost_bytes_ = 2 * elements * bytes_;
    const bool is_short = elements <= kTaskElements;
    for (size_t i = 0; i < moves_.size(); ++i) {
      for (const Piece& piece : PiecesOf(i)) {
        if (work_.empty() || (overwrites && !is_short)) work_.emplace_back();
        work_.back().pieces.push_back(piece);
        work_.back().shares += piece.shares;
      }
    }
    if (is_short) work_[0].shares_a_task = work_[0].shares;
    for (const Phase& phase : work_) phases_.push_back(phase.shares / phase.shares_a_task);
  }

  void Run(size_t phase, uint64_t task, const RunBuffers& buffers) const override {
    const uint64_t shares = work_[phase].shares_a_task;
    for (uint64_t share = task * shares; share < (task + 1) * shares; ++share) {
      RunShare(work_[phase], share, buffers);
    }
  }

 private:
  // Of a move: all rows, or the same part of all rows.
  struct Piece {
    size_t move = 0;
    uint64_t rows = 1;
    uint64_t rows_a_share = 1;
    uint64_t first_part = 0;
    uint64_t parts = 1;  // of each row
    uint64_t shares = 1;
  };
  // Pieces that do not depend on each other, or that one task moves in their order.
  struct Phase {
    std::vector<Piece> pieces;
    uint64_t shares = 0;
    uint64_t shares_a_task = 1;
  };

  std::vector<Piece> PiecesOf(size_t number) const {
    const Move& move = moves_[number];
    const uint64_t length = move.dims.back().size;
    const uint64_t parts = CeilDiv(length, kTaskElements);
    // Of writes to one place the last one along a row remains, so its parts follow one another.
    const uint64_t turns = move.index == MoveIndex::kDestination ? parts : 1;
    Piece piece = {.move = number,
                   .rows = CountOf(move.dims) / length,
                   .rows_a_share = std::max<uint64_t>(1, kTaskElements / length),
                   .parts = parts / turns};
    piece.shares = CeilDiv(piece.rows, piece.rows_a_share) * piece.parts;
    std::vector<Piece> pieces;
    for (; piece.first_part < turns; ++piece.first_part) pieces.push_back(piece);
    return pieces;
  }

  void RunShare(const Phase& phase, uint64_t share, const RunBuffers& buffers) const {
    const Piece* piece = phase.pieces.data();
    for (; share >= piece->shares; ++piece) share -= piece->shares;
    const Move& move = moves_[piece->move];
    const MoveDim& row = move.dims.back();
    const uint64_t first = (piece->first_part + share % piece->parts) * kTaskElements;
    const uint64_t end = std::min(first + kTaskElements, row.size);
    const uint64_t begin = share / piece->parts * piece->rows_a_share;
    for (uint64_t r = begin; r < std::min(begin + piece->rows_a_share, piece->rows); ++r) {
      MovePlace place(move);
      uint64_t rest = r;
      for (size_t d = move.dims.size() - 1; d-- > 0;) {
        place.Add(move.dims[d], rest % move.dims[d].size);
        rest /= move.dims[d].size;
      }
      MoveRow(piece->move, place, first, end, buffers);
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
  std::vector<Phase> work_;
  const uint32_t bytes_;
};

}  // namespace

std::unique_ptr<CpuProgram> CpuMovement(const OperatorDesc& desc) {
  return std::make_unique<MoveProgram>(MovesOf(desc), desc);
}

}  // namespace opmill
