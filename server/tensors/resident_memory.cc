#include "server/tensors/resident_memory.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/rounding.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/operator_list.h"
#include "kernels/program/placement.h"

namespace opmill {
namespace {

// How much is on its way to or from the adapter's own memory at a time.
constexpr uint64_t kPieceBytes = uint64_t{64} << 20;

// Of `bytes` bytes, a multiple of 4.
absl::StatusOr<std::shared_ptr<const CompiledProgram>> CompileCopy(Device& device, uint64_t bytes) {
  const TensorDesc words = {.data_type = DataType::kUint32,
                            .sizes = {static_cast<uint32_t>(bytes / 4)}};
  OperatorDesc desc = {.schema = FindSchema("identity"), .inputs = {words}, .outputs = {words}};
  ASSIGN_OR_RETURN(const OperatorDesc valid, Validate(std::move(desc)));
  return device.Compile(valid);
}

// Calls `copy` with each piece from `begin` to `end`, its program, and a buffer of the host for it.
template <typename Copy>
absl::Status InPieces(Device& device, uint64_t begin, uint64_t end, Residency residency,
                      Copy copy) {
  std::shared_ptr<const CompiledProgram> program;
  std::shared_ptr<Buffer> host;
  for (uint64_t offset = begin; offset < end; offset += kPieceBytes) {
    const uint64_t size = std::min(end - offset, kPieceBytes);
    if (host == nullptr || size < kPieceBytes) {
      ASSIGN_OR_RETURN(program, CompileCopy(device, RoundUp(size, 4)));
      ASSIGN_OR_RETURN(host, device.Allocate(RoundUp(size, 4), residency));
    }
    RETURN_IF_ERROR(copy(offset, size, program, host));
  }
  return absl::OkStatus();
}

// To memory to which the host has no access.
absl::Status Upload(Device& device, const std::shared_ptr<Buffer>& buffer, uint64_t begin,
                    uint64_t end, const TensorContents& contents) {
  return InPieces(
      device, begin, end, Residency::kUpload,
      [&](uint64_t offset, uint64_t size, const auto& program, const auto& host) -> absl::Status {
        RETURN_IF_ERROR(contents(offset, host->bytes().first(static_cast<size_t>(size))));
        const Range to(buffer, offset, RoundUp(size, 4));
        return device.RunAndWait(program, {.inputs = {host}, .outputs = {to}}).status();
      });
}

// To memory to which the host has no access. A run writes whole blocks, so one that has other bytes
// too is read first.
absl::Status UploadWithin(Device& device, const std::shared_ptr<Buffer>& buffer, uint64_t offset,
                          absl::Span<const std::byte> bytes) {
  constexpr uint64_t kBlock = kPlacementAlignment;
  const uint64_t begin = offset / kBlock * kBlock;
  const uint64_t end = std::min(RoundUp(offset + bytes.size(), kBlock), buffer->size_bytes());
  const uint64_t last_block = (end - 1) / kBlock * kBlock;
  const bool keeps_first = begin < offset;
  const bool keeps_last =
      offset + bytes.size() < end && !(keeps_first && last_block == begin);  // which is read once
  return Upload(device, buffer, begin, end,
                [&](uint64_t at, absl::Span<std::byte> to) -> absl::Status {
                  const uint64_t to_end = at + to.size();
                  if (keeps_first && at == begin) {
                    RETURN_IF_ERROR(ReadBuffer(device, buffer, at, to.subspan(0, kBlock)));
                  }
                  if (keeps_last && to_end == end) {
                    const auto block = static_cast<size_t>(last_block - at);
                    RETURN_IF_ERROR(ReadBuffer(device, buffer, last_block, to.subspan(block)));
                  }
                  const uint64_t first = std::max(at, offset);
                  const uint64_t rest = std::min(to_end, offset + bytes.size()) - first;
                  std::copy_n(bytes.begin() + static_cast<size_t>(first - offset), rest,
                              to.begin() + static_cast<size_t>(first - at));
                  return absl::OkStatus();
                });
}

}  // namespace

absl::StatusOr<ResidentBytes::Share> ResidentBytes::Take(const std::string* owner,
                                                         absl::string_view subject,
                                                         uint64_t bytes) {
  const auto fits = [bytes](uint64_t used, uint64_t limit) {
    return bytes <= limit - std::min(limit, used);
  };
  const absl::MutexLock lock(&mutex_);
  uint64_t of_owner = 0;
  if (owner != nullptr) {
    const auto found = of_owner_.find(*owner);
    if (found != of_owner_.end()) of_owner = found->second;
  }
  const bool fits_owner =
      owner == nullptr || limits_.bytes_per_owner == 0 || fits(of_owner, limits_.bytes_per_owner);
  if (fits_owner && fits(all_, limits_.bytes)) return Added(owner, bytes);
  const std::string used =
      fits_owner ? absl::StrCat(all_, " of ", limits_.bytes, " bytes (max_resident_tensor_bytes)")
                 : absl::StrCat(of_owner, " of the ", limits_.bytes_per_owner,
                                " bytes of each owner (max_resident_tensor_bytes_per_owner)");
  return absl::ResourceExhaustedError(absl::StrCat(
      "There is no room for ", subject, ", which takes ", bytes, " bytes: ", used, " are in use."));
}

ResidentBytes::Share ResidentBytes::TakeAnyway(const std::string* owner, uint64_t bytes) {
  const absl::MutexLock lock(&mutex_);
  return Added(owner, bytes);
}

ResidentBytes::Share ResidentBytes::Added(const std::string* owner, uint64_t bytes) {
  all_ += bytes;
  const bool is_owned = owner != nullptr;
  if (is_owned) of_owner_[*owner] += bytes;
  // Runs may keep it for longer than the store.
  return Share(nullptr, [all = shared_from_this(), is_owned, bytes,
                         name = is_owned ? *owner : std::string()](void*) {
    all->GiveBack(name, is_owned, bytes);
  });
}

void ResidentBytes::GiveBack(const std::string& owner, bool is_owned, uint64_t bytes) {
  const absl::MutexLock lock(&mutex_);
  all_ -= bytes;
  if (!is_owned) return;
  const auto found = of_owner_.find(owner);
  if ((found->second -= bytes) == 0) of_owner_.erase(found);
}

uint64_t ResidentBytes::all() const {
  const absl::MutexLock lock(&mutex_);
  return all_;
}

absl::StatusOr<std::shared_ptr<HostCopy>> HostCopy::Create(uint64_t bytes,
                                                           ResidentBytes::Share share) {
  const auto size = static_cast<size_t>(bytes);
  std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[size]);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The system has no memory for a copy of ", bytes, " bytes."));
  }
  return std::shared_ptr<HostCopy>(new HostCopy(std::move(memory), size, std::move(share)));
}

absl::Status ResidentMemory::Write(Device& device, size_t offset,
                                   absl::Span<const std::byte> rows) const {
  if (const absl::Span<std::byte> to = buffer->bytes(); !to.empty()) {
    std::copy(rows.begin(), rows.end(), to.begin() + offset);
  } else {
    RETURN_IF_ERROR(UploadWithin(device, buffer, offset, rows));
  }
  if (copy != nullptr) std::copy(rows.begin(), rows.end(), copy->bytes().begin() + offset);
  return absl::OkStatus();
}

absl::Status ResidentMemory::CopyFrom(Device& device, const ResidentMemory& from,
                                      uint64_t bytes) const {
  const auto size = static_cast<size_t>(bytes);
  if (const absl::Span<const std::byte> host = from.buffer->bytes(); !host.empty()) {
    return Write(device, 0, host.first(size));
  }
  ASSIGN_OR_RETURN(const auto program, CompileCopy(device, RoundUp(bytes, 4)));
  RETURN_IF_ERROR(
      device.RunAndWait(program, {.inputs = {from.buffer}, .outputs = {buffer}}).status());
  if (copy != nullptr) std::copy_n(from.copy->bytes().begin(), size, copy->bytes().begin());
  return absl::OkStatus();
}

absl::Status WriteBuffer(Device& device, const std::shared_ptr<Buffer>& buffer, uint64_t bytes,
                         const TensorContents& contents) {
  if (const absl::Span<std::byte> to = buffer->bytes(); !to.empty()) {
    return contents(0, to.first(static_cast<size_t>(bytes)));
  }
  return Upload(device, buffer, 0, bytes, contents);
}

absl::Status ReadBuffer(Device& device, const std::shared_ptr<Buffer>& buffer, uint64_t offset,
                        absl::Span<std::byte> to) {
  if (const absl::Span<const std::byte> from = buffer->bytes(); !from.empty()) {
    std::copy_n(from.begin() + static_cast<size_t>(offset), to.size(), to.begin());
    return absl::OkStatus();
  }
  return InPieces(
      device, offset, offset + to.size(), Residency::kReadback,
      [&](uint64_t at, uint64_t size, const auto& program, const auto& host) -> absl::Status {
        const Range from(buffer, at, RoundUp(size, 4));
        RETURN_IF_ERROR(device.RunAndWait(program, {.inputs = {from}, .outputs = {host}}).status());
        std::copy_n(host->bytes().begin(), size, to.begin() + static_cast<size_t>(at - offset));
        return absl::OkStatus();
      });
}

}  // namespace opmill
