#include "kernels/cpu/kept_constants.h"

#include "absl/strings/str_cat.h"

namespace opmill {

struct KeptFloats::Shared {
  mutable absl::Mutex mutex;
  absl::flat_hash_map<KeptKey, std::weak_ptr<const KeptFloats>> floats ABSL_GUARDED_BY(mutex);
};

KeptFloats::KeptFloats(std::shared_ptr<Shared> shared, KeptKey key, uint64_t count)
    : shared_(std::move(shared)),
      key_(std::move(key)),
      count_(count),
      floats_(std::make_unique<float[]>(count)) {}

KeptFloats::~KeptFloats() {
  const absl::MutexLock lock(&shared_->mutex);
  const auto found = shared_->floats.find(key_);
  // Others may have taken its place meanwhile.
  if (found != shared_->floats.end() && found->second.expired()) shared_->floats.erase(found);
}

KeptConstants::KeptConstants() : shared_(std::make_shared<KeptFloats::Shared>()) {}

// Two threads that need the same numbers may both compute them; one result is dropped.
std::shared_ptr<const KeptFloats> KeptConstants::Get(KeptKey key, uint64_t count, Write write) {
  std::shared_ptr<const KeptFloats> floats;
  {
    const absl::MutexLock lock(&shared_->mutex);
    const auto found = shared_->floats.find(key);
    if (found != shared_->floats.end()) floats = found->second.lock();
  }
  if (floats != nullptr) return floats;
  const std::shared_ptr<KeptFloats> made(new KeptFloats(shared_, std::move(key), count));
  if (!write(made->floats_.get())) return nullptr;
  const absl::MutexLock lock(&shared_->mutex);
  std::weak_ptr<const KeptFloats>& kept = shared_->floats[made->key_];
  floats = kept.lock();
  if (floats == nullptr) kept = floats = made;
  return floats;
}

size_t KeptConstants::size() const {
  const absl::MutexLock lock(&shared_->mutex);
  return shared_->floats.size();
}

std::shared_ptr<const KeptFloats> ConstantInput::Keep(
    const std::string& form, uint64_t count,
    absl::FunctionRef<void(const std::byte* bytes, float* to)> write) const {
  return kept_.Get({key_.digests, absl::StrCat(key_.form, " ", form)}, count, [&](float* to) {
    const std::byte* const bytes = bytes_();
    if (bytes != nullptr) write(bytes, to);
    return bytes != nullptr;
  });
}

}  // namespace opmill
