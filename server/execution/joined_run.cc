#include "server/execution/joined_run.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "kernels/base/errors.h"

namespace opmill {
namespace {

// A part of a buffer that only the host reads.
class BufferPart final : public Buffer {
 public:
  BufferPart(std::shared_ptr<Buffer> whole, uint64_t offset, uint64_t size)
      : Buffer(size, whole->residency()), whole_(std::move(whole)), offset_(offset) {}
  absl::Span<std::byte> bytes() override {
    return whole_->bytes().subspan(static_cast<size_t>(offset_), static_cast<size_t>(size_bytes()));
  }

 private:
  const std::shared_ptr<Buffer> whole_;
  const uint64_t offset_;
};

// Host memory, for the results of a member.
class RowStarts final : public Buffer {
 public:
  explicit RowStarts(uint64_t size)
      : Buffer(size, Residency::kReadback), bytes_(static_cast<size_t>(size)) {}
  absl::Span<std::byte> bytes() override { return absl::MakeSpan(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Packed tensors with the same bytes in each row.
bool HasEqualRows(const TensorDesc& own, uint32_t own_rows, const TensorDesc& joined,
                  uint32_t rows) {
  return own.data_type == joined.data_type && IsPacked(own) && IsPacked(joined) &&
         SpannedBytes(own) * rows == SpannedBytes(joined) * own_rows;
}

// Whether a joined run of so many rows has a part of this input from each member; otherwise it
// reads the resident tensor.
bool IsCopied(const ExecutionRequest& request, size_t input, const TensorDesc& joined,
              uint32_t rows) {
  return !request.op.has_value() ||
         (request.op->schema->inputs[input].has_rows && joined.sizes[0] == rows);
}

bool FitsInput(const Execution& execution, size_t input, const TensorDesc& joined, uint32_t rows) {
  const ExecutionRequest& request = execution.request();
  // Only a schema says what an absent input stands for.
  if (input >= execution.inputs().size()) return request.op.has_value();
  const TensorDesc& own = execution.inputs()[input];
  if (!IsCopied(request, input, joined, rows)) {
    TensorDesc grown = own;
    if (request.op->schema->inputs[input].rows_have_ones) {
      grown.sizes[0] = std::max(own.sizes[0], joined.sizes[0]);
    }
    return grown == joined;
  }
  if (!request.op.has_value()) return HasEqualRows(own, request.rows(), joined, rows);
  if (request.op->schema->inputs[input].ones_if_absent == nullptr) {
    return HasEqualRows(own, own.sizes[0], joined, rows);
  }
  return own.data_type == joined.data_type && IsPacked(own) && own.sizes[1] <= joined.sizes[1];
}

bool FitsOutput(const Execution& execution, const TensorDesc& own, const TensorDesc& joined,
                uint32_t rows) {
  const ExecutionRequest& request = execution.request();
  if (HasEqualRows(own, request.rows(), joined, rows)) return true;
  const bool has_row_length = request.op.has_value() && request.op->schema->has_row_length();
  return has_row_length && own.data_type == joined.data_type && IsPacked(own) && IsPacked(joined) &&
         own.sizes[1] < joined.sizes[1];
}

}  // namespace

bool CanJoin(const Execution& execution, const CompiledProgram& joined, uint32_t rows) {
  if (joined.cost().rounding == 0 || joined.cost().rounding != execution.rounding()) return false;
  const std::vector<TensorDesc> inputs = TensorsOf(joined.program(), ValueKind::kInput);
  const std::vector<TensorDesc> outputs = TensorsOf(joined.program(), ValueKind::kOutput);
  if (execution.inputs().size() > inputs.size() || execution.outputs().size() != outputs.size()) {
    return false;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!FitsInput(execution, i, inputs[i], rows)) return false;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!FitsOutput(execution, execution.outputs()[i], outputs[i], rows)) return false;
  }
  return true;
}

absl::StatusOr<std::shared_ptr<JoinedRun>> JoinedRun::Create(Device& device,
                                                             const CompiledProgram& compiled,
                                                             uint32_t rows,
                                                             std::vector<JoinedMember> members) {
  std::vector<uint64_t> output_bytes;
  for (const TensorDesc& output : TensorsOf(compiled.program(), ValueKind::kOutput)) {
    output_bytes.push_back(SpannedBytes(output));
  }
  std::shared_ptr<JoinedRun> run(new JoinedRun(rows, std::move(output_bytes), std::move(members)));
  for (const uint64_t size : RequiredBytes(compiled.program(), ValueKind::kOutput)) {
    ASSIGN_OR_RETURN(auto buffer, device.Allocate(size, Residency::kReadback));
    run->bindings_.outputs.emplace_back(std::move(buffer));
  }
  const std::vector<TensorDesc> inputs = TensorsOf(compiled.program(), ValueKind::kInput);
  const JoinedMember& first = run->members_[0];
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!IsCopied(first.execution->request(), i, inputs[i], rows)) {
      run->bindings_.inputs.push_back(first.inputs[i]);
      continue;
    }
    ASSIGN_OR_RETURN(auto buffer, device.Allocate(RequiredBytes(inputs[i]), Residency::kUpload));
    run->CopyInput(i, SpannedBytes(inputs[i]), buffer->bytes());
    run->bindings_.inputs.emplace_back(std::move(buffer));
  }
  run->WatchMembers();
  return run;
}

void JoinedRun::CopyInput(size_t index, uint64_t bytes, absl::Span<std::byte> to) const {
  std::byte* at = to.data();
  for (const JoinedMember& member : members_) {
    const Execution& execution = *member.execution;
    const std::optional<OperatorDesc>& op = execution.request().op;
    const auto all = static_cast<size_t>(BytesOf(execution, bytes));
    if (!op.has_value()) {
      std::memcpy(at, member.inputs[index].bytes().data(), all);
      at += all;
      continue;
    }
    const bool is_absent = index >= member.inputs.size();
    const TensorDesc own =
        is_absent ? op->schema->inputs[index].ones_if_absent(*op) : execution.inputs()[index];
    const auto row_bytes = static_cast<size_t>(SpannedBytes(own) / own.sizes[0]);
    const uint32_t rows = execution.request().rows();
    for (uint32_t row = 0; row < rows; ++row, at += all / rows) {
      if (is_absent) {
        std::memset(at, 1, row_bytes);
      } else {
        const uint32_t own_row = own.sizes[0] == 1 ? 0 : row;
        std::memcpy(at, member.inputs[index].bytes().data() + own_row * row_bytes, row_bytes);
      }
      std::memset(at + row_bytes, 0, all / rows - row_bytes);
    }
  }
  std::memset(at, 0, static_cast<size_t>(to.data() + to.size() - at));
}

uint64_t JoinedRun::BytesOf(const Execution& member, uint64_t bytes) const {
  return bytes * member.request().rows() / rows_;
}

void JoinedRun::WatchMembers() {
  left_ = members_.size();
  for (const JoinedMember& member : members_) {
    watched_.push_back(std::make_unique<StopCallback>(member.execution->abandoned(), [this] {
      if (--left_ == 0) abandoned_.request_stop();
    }));
  }
}

std::shared_ptr<Buffer> JoinedRun::OutputOf(size_t member, size_t index) const {
  uint64_t offset = 0;
  for (size_t i = 0; i < member; ++i) {
    offset += BytesOf(*members_[i].execution, output_bytes_[index]);
  }
  const Execution& execution = *members_[member].execution;
  const uint64_t bytes = BytesOf(execution, output_bytes_[index]);
  const uint64_t own_bytes = execution.output_bytes()[index];
  const std::shared_ptr<Buffer>& all = bindings_.outputs[index].buffer;
  if (own_bytes == bytes) return std::make_shared<BufferPart>(all, offset, bytes);
  auto starts = std::make_shared<RowStarts>(own_bytes);
  const uint32_t rows = execution.request().rows();
  const auto row_bytes = static_cast<size_t>(own_bytes / rows);
  for (uint32_t row = 0; row < rows; ++row) {
    std::memcpy(starts->bytes().data() + row * row_bytes,
                all->bytes().data() + offset + bytes / rows * row, row_bytes);
  }
  return starts;
}

}  // namespace opmill
