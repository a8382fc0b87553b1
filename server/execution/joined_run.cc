#include "server/execution/joined_run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/functional/function_ref.h"
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

bool IsShared(const ExecutionRequest& request, size_t input) {
  return !request.sources.empty() && request.sources[input].resident != nullptr;
}

// Packed tensors with the same bytes in each row, except for inputs that all members read.
bool HaveEqualRows(const std::vector<TensorDesc>& own, uint32_t own_rows,
                   const std::vector<TensorDesc>& joined, uint32_t rows,
                   absl::FunctionRef<bool(size_t)> is_shared) {
  if (own.size() != joined.size()) return false;
  for (size_t i = 0; i < own.size(); ++i) {
    if (is_shared(i)) {
      if (own[i] != joined[i]) return false;
      continue;
    }
    if (own[i].data_type != joined[i].data_type || !IsPacked(own[i]) || !IsPacked(joined[i]) ||
        SpannedBytes(own[i]) * rows != SpannedBytes(joined[i]) * own_rows) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool CanJoin(const Execution& execution, const CompiledProgram& joined, uint32_t rows) {
  const uint32_t own_rows = execution.request().rows();
  return joined.cost().rounding != 0 && joined.cost().rounding == execution.rounding() &&
         HaveEqualRows(execution.inputs(), own_rows, TensorsOf(joined.program(), ValueKind::kInput),
                       rows, [&](size_t i) { return IsShared(execution.request(), i); }) &&
         HaveEqualRows(execution.outputs(), own_rows,
                       TensorsOf(joined.program(), ValueKind::kOutput), rows,
                       [](size_t) { return false; });
}

absl::StatusOr<std::shared_ptr<JoinedRun>> JoinedRun::Create(Device& device,
                                                             const CompiledProgram& compiled,
                                                             std::vector<JoinedMember> members) {
  std::shared_ptr<JoinedRun> run(new JoinedRun(std::move(members)));
  for (const uint64_t size : RequiredBytes(compiled.program(), ValueKind::kOutput)) {
    ASSIGN_OR_RETURN(auto buffer, device.Allocate(size, Residency::kReadback));
    run->bindings_.outputs.emplace_back(std::move(buffer));
  }
  const std::vector<uint64_t> sizes = RequiredBytes(compiled.program(), ValueKind::kInput);
  const JoinedMember& first = run->members_[0];
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (IsShared(first.execution->request(), i)) {
      run->bindings_.inputs.push_back(first.inputs[i]);
      continue;
    }
    ASSIGN_OR_RETURN(auto buffer, device.Allocate(sizes[i], Residency::kUpload));
    run->bindings_.inputs.emplace_back(std::move(buffer));
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
