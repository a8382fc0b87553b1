#include "server/execution/joined_run.h"

#include <cstring>
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

// Of an input that all members read; false also if the request has no such input.
bool IsShared(const ExecutionRequest& request, size_t input) {
  return input < request.sources.size() && request.sources[input].resident != nullptr;
}

// Packed tensors with the same bytes in each row.
bool HasEqualRows(const TensorDesc& own, uint32_t own_rows, const TensorDesc& joined,
                  uint32_t rows) {
  return own.data_type == joined.data_type && IsPacked(own) && IsPacked(joined) &&
         SpannedBytes(own) * rows == SpannedBytes(joined) * own_rows;
}

bool FitsInput(const Execution& execution, size_t input, const TensorDesc& joined, uint32_t rows) {
  const ExecutionRequest& request = execution.request();
  // Only a descriptor says what an absent input stands for.
  if (input >= execution.inputs().size()) return request.op.has_value();
  const TensorDesc& own = execution.inputs()[input];
  if (IsShared(request, input)) return own == joined;
  const bool is_repeated = request.op.has_value() && own.sizes[0] == 1;
  return HasEqualRows(own, is_repeated ? 1 : request.rows(), joined, rows);
}

bool FitsOutput(const Execution& execution, const TensorDesc& own, const TensorDesc& joined,
                uint32_t rows) {
  const ExecutionRequest& request = execution.request();
  if (HasEqualRows(own, request.rows(), joined, rows)) return true;
  const bool has_row_length = request.op.has_value() && request.op->schema->RowLengthIndex() <
                                                            request.op->schema->attributes.size();
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
    if (IsShared(first.execution->request(), i)) {
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
  size_t at = 0;
  for (const JoinedMember& member : members_) {
    const size_t end = at + static_cast<size_t>(BytesOf(*member.execution, bytes));
    if (index >= member.inputs.size()) {
      std::memset(to.data() + at, 1, end - at);
      at = end;
    }
    while (at < end) {
      const auto own = static_cast<size_t>(SpannedBytes(member.execution->inputs()[index]));
      std::memcpy(to.data() + at, member.inputs[index].bytes().data(), own);
      at += own;
    }
  }
  std::memset(to.data() + at, 0, to.size() - at);
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
