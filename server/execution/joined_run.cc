#include "server/execution/joined_run.h"

#include <algorithm>
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

// Packed tensors with the same bytes in each row.
bool HaveEqualRows(const std::vector<TensorDesc>& own, uint32_t own_rows,
                   const std::vector<TensorDesc>& joined, uint32_t rows) {
  if (own.size() != joined.size()) return false;
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i].data_type != joined[i].data_type || !IsPacked(own[i]) || !IsPacked(joined[i]) ||
        SpannedBytes(own[i]) * rows != SpannedBytes(joined[i]) * own_rows) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<std::vector<Range>> Allocate(Device& device, const std::vector<uint64_t>& sizes,
                                            Residency residency) {
  std::vector<Range> ranges;
  for (const uint64_t size : sizes) {
    ASSIGN_OR_RETURN(auto buffer, device.Allocate(size, residency));
    ranges.emplace_back(std::move(buffer));
  }
  return ranges;
}

}  // namespace

bool CanJoin(const Execution& execution, const CompiledProgram& joined, uint32_t rows) {
  const uint32_t own_rows = execution.request().rows();
  return joined.cost().rounding != 0 && joined.cost().rounding == execution.rounding() &&
         HaveEqualRows(execution.inputs(), own_rows, TensorsOf(joined.program(), ValueKind::kInput),
                       rows) &&
         HaveEqualRows(execution.outputs(), own_rows,
                       TensorsOf(joined.program(), ValueKind::kOutput), rows);
}

absl::StatusOr<std::shared_ptr<JoinedRun>> JoinedRun::Create(Device& device,
                                                             const CompiledProgram& compiled,
                                                             std::vector<JoinedMember> members) {
  std::shared_ptr<JoinedRun> run(new JoinedRun(std::move(members)));
  ASSIGN_OR_RETURN(
      run->bindings_.inputs,
      Allocate(device, RequiredBytes(compiled.program(), ValueKind::kInput), Residency::kUpload));
  ASSIGN_OR_RETURN(run->bindings_.outputs,
                   Allocate(device, RequiredBytes(compiled.program(), ValueKind::kOutput),
                            Residency::kReadback));
  for (size_t i = 0; i < run->bindings_.inputs.size(); ++i) {
    const absl::Span<std::byte> to = run->bindings_.inputs[i].bytes();
    size_t at = 0;
    for (const JoinedMember& member : run->members_) {
      const auto bytes = static_cast<size_t>(SpannedBytes(member.execution->inputs()[i]));
      std::memcpy(to.data() + at, member.inputs[i].bytes().data(), bytes);
      at += bytes;
    }
    std::fill(to.begin() + static_cast<std::ptrdiff_t>(at), to.end(), std::byte{0});
  }
  run->WatchMembers();
  return run;
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
  for (size_t i = 0; i < member; ++i) offset += members_[i].execution->output_bytes()[index];
  return std::make_shared<BufferPart>(bindings_.outputs[index].buffer, offset,
                                      members_[member].execution->output_bytes()[index]);
}

}  // namespace opmill
