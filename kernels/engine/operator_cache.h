// Descriptor -> compiled operator. One caller compiles; the others wait for it.
#ifndef OPMILL_KERNELS_ENGINE_OPERATOR_CACHE_H_
#define OPMILL_KERNELS_ENGINE_OPERATOR_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/engine/device.h"

namespace opmill {

// The public name of an operator: 64 hexadecimal digits, equal for descriptors that mean the same
// (axes in another order, packed strides given explicitly).
std::string OperatorKey(const OperatorDesc& validated);

struct OperatorCacheOptions {
  size_t capacity = 64;  // operators kept; 0 keeps none and still compiles once at a time
  uint64_t max_bytes = UINT64_MAX;  // kept_bytes of all that are kept
  // Different kernels of all that are kept: they are live on the device as long as those are.
  size_t max_kernels = SIZE_MAX;
};

struct OperatorCacheStatistics {
  uint64_t hits = 0;       // answered at once
  uint64_t misses = 0;     // compiled for the caller
  uint64_t waits = 0;      // waited for the compilation of another caller
  uint64_t evictions = 0;  // made room for another
  uint64_t failures = 0;   // compilations that ended in an error
  uint64_t entries = 0;    // kept now
  uint64_t bytes = 0;      // kept_bytes of those
  uint64_t kernels = 0;    // different ones of those
};

struct CachedOperator {
  std::shared_ptr<const CompiledOperator> compiled;
  bool was_cached = false;  // false for those who compiled and those who waited
  absl::Duration duration;  // that this caller spent on compiling or waiting
};

// Thread-safe. An operator in use outlives its eviction. Example:
//
//   std::unique_ptr<OperatorCache> cache = OperatorCache::Create(device, {.capacity = 64});
//   ASSIGN_OR_RETURN(CachedOperator found, cache->Get(validated, deadline));
class OperatorCache {
 public:
  // `device` outlives the cache.
  static std::unique_ptr<OperatorCache> Create(Device& device, OperatorCacheOptions options);

  // The error is the device's own, given to all who wait for it and not kept.
  // DeadlineExceeded ends a wait for another caller; a compilation itself runs to its end.
  absl::StatusOr<CachedOperator> Get(const OperatorDesc& validated,
                                     absl::Time deadline = absl::InfiniteFuture());

  // A hit, or nothing: neither compiles nor waits, and counts only the hit.
  std::optional<CachedOperator> Find(const OperatorDesc& validated);

  // Lets go of as many, the longest unused first. For want of memory.
  void Evict(size_t operators);

  // After the loss of the device: forgets every operator. A compilation under way still answers its
  // own callers, but is not kept and not joined.
  void Invalidate();

  OperatorCacheStatistics statistics() const;

 private:
  using Result = absl::StatusOr<std::shared_ptr<const CompiledOperator>>;

  struct Compilation {
    absl::Notification done;
    Result result = absl::UnknownError("The compilation has not ended.");  // constant once done
  };

  struct Entry {
    std::shared_ptr<Compilation> compilation;
    uint64_t last_use = 0;
    bool compiled = false;  // the compilation has ended well
    uint64_t bytes = 0;     // its kept_bytes, once compiled
  };

  OperatorCache(Device& device, OperatorCacheOptions options)
      : device_(device), options_(options) {}

  void Settle(const OperatorDesc& desc, const std::shared_ptr<Compilation>& compilation);
  void EvictOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HoldKernels(const OperatorCost& cost) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropKernels(const OperatorCost& cost) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Device& device_;
  const OperatorCacheOptions options_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<OperatorDesc, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  // How often the operators that are kept name each.
  absl::flat_hash_map<uint64_t, size_t> kernel_uses_ ABSL_GUARDED_BY(mutex_);
  OperatorCacheStatistics statistics_ ABSL_GUARDED_BY(mutex_);
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;  // counts uses
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_ENGINE_OPERATOR_CACHE_H_
