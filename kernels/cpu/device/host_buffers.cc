#include "kernels/cpu/device/host_buffers.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/cpu/operating_system.h"

namespace opmill {
namespace {

// Smaller blocks come from operator new, which reuses memory by itself.
constexpr uint64_t kLeastPages = uint64_t{1} << 20;
constexpr std::align_val_t kAlignment{64};

}  // namespace

class HostBuffers::Memory : public Buffer {
 public:
  Memory(std::shared_ptr<HostBuffers> owner, std::byte* block, uint64_t block_bytes,
         uint64_t size_bytes, Residency residency)
      : Buffer(size_bytes, residency),
        owner_(std::move(owner)),
        block_(block),
        block_bytes_(block_bytes) {}
  ~Memory() override { owner_->GiveBack(block_, block_bytes_, size_bytes()); }
  absl::Span<std::byte> bytes() override {
    return absl::MakeSpan(block_, static_cast<size_t>(size_bytes()));
  }

 private:
  const std::shared_ptr<HostBuffers> owner_;
  std::byte* const block_;
  const uint64_t block_bytes_;
};

HostBuffers::~HostBuffers() { ReleaseIdle(); }

absl::StatusOr<std::shared_ptr<Buffer>> HostBuffers::Allocate(uint64_t size_bytes,
                                                              Residency residency) {
  {
    const absl::MutexLock lock(&mutex_);
    if (size_bytes > max_bytes_ - used_bytes_) {
      return absl::ResourceExhaustedError(absl::StrCat("A buffer of ", size_bytes,
                                                       " bytes does not fit: ", used_bytes_, " of ",
                                                       max_bytes_, " bytes are in use."));
    }
    used_bytes_ += size_bytes;
  }
  uint64_t block_bytes = 0;
  std::byte* block = Take(size_bytes, block_bytes);
  if (block == nullptr) {
    const absl::MutexLock lock(&mutex_);
    used_bytes_ -= size_bytes;
    return absl::ResourceExhaustedError(
        absl::StrCat("The host has no ", size_bytes, " bytes for a buffer."));
  }
  return std::make_shared<Memory>(shared_from_this(), block, block_bytes, size_bytes, residency);
}

std::byte* HostBuffers::Take(uint64_t size_bytes, uint64_t& block_bytes) {
  if (size_bytes < kLeastPages) {
    block_bytes = std::max<uint64_t>(size_bytes, 1);
    return static_cast<std::byte*>(
        ::operator new(static_cast<size_t>(block_bytes), kAlignment, std::nothrow));
  }
  block_bytes = (size_bytes + kPageUnit - 1) / kPageUnit * kPageUnit;
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = idle_.lower_bound(block_bytes);
    if (found != idle_.end() && found->first <= block_bytes + block_bytes / 4) {
      block_bytes = found->first;
      std::byte* block = found->second;
      idle_bytes_ -= block_bytes;
      idle_.erase(found);
      return block;
    }
  }
  return MapPages(block_bytes);
}

void HostBuffers::GiveBack(std::byte* block, uint64_t block_bytes, uint64_t size_bytes) {
  const bool pages = size_bytes >= kLeastPages;
  {
    const absl::MutexLock lock(&mutex_);
    used_bytes_ -= size_bytes;
    if (pages && block_bytes <= max_idle_bytes_ && idle_bytes_ <= max_idle_bytes_ - block_bytes) {
      idle_.emplace(block_bytes, block);
      idle_bytes_ += block_bytes;
      return;
    }
  }
  if (pages) {
    UnmapPages(block, block_bytes);
  } else {
    ::operator delete(block, kAlignment);
  }
}

void HostBuffers::ReleaseIdle() {
  std::multimap<uint64_t, std::byte*> released;
  {
    const absl::MutexLock lock(&mutex_);
    released.swap(idle_);
    idle_bytes_ = 0;
  }
  for (const auto& [size_bytes, block] : released) UnmapPages(block, size_bytes);
}

uint64_t HostBuffers::used_bytes() const {
  const absl::MutexLock lock(&mutex_);
  return used_bytes_;
}

uint64_t HostBuffers::idle_bytes() const {
  const absl::MutexLock lock(&mutex_);
  return idle_bytes_;
}

}  // namespace opmill
