// Maps programs to compiled ones; an operator is a program of one node. One caller compiles; others
// that need the same program wait for it. Once all of them are gone, the compilation is stopped.
#ifndef OPMILL_KERNELS_ENGINE_OPERATOR_CACHE_H_
#define OPMILL_KERNELS_ENGINE_OPERATOR_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kernels/base/steady_time.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/engine/device.h"
#include "kernels/program/program.h"

namespace opmill {

// The public name of an operator: 64 hexadecimal digits, equal for equivalent descriptors (axes in
// another order, packed strides given explicitly).
std::string OperatorKey(const OperatorDesc& validated);

struct OperatorCacheOptions {
  size_t capacity = 64;  // with 0, concurrent callers still share a compilation
  // Sum of kept_bytes over all entries; what they share counts once.
  uint64_t max_bytes = UINT64_MAX;
  // The most distinct kernels over all entries. They are live on the device while their operators
  // are kept.
  size_t max_kernels = SIZE_MAX;
};

struct OperatorCacheStatistics {
  uint64_t hits = 0;       // answered at once
  uint64_t misses = 0;     // compiled for the caller
  uint64_t waits = 0;      // waited for the compilation of another caller
  uint64_t evictions = 0;  // removed to make room
  uint64_t failures = 0;   // compilations that ended in an error
  uint64_t entries = 0;    // current entries
  uint64_t bytes = 0;      // kept_bytes of these entries; what they share counts once
  uint64_t kernels = 0;    // distinct kernels of these entries
};

struct CachedOperator {
  std::shared_ptr<const CompiledProgram> compiled;
  bool was_cached = false;                  // false if this caller compiled it or waited
  absl::Duration duration;                  // time that this caller compiled or waited
  std::shared_ptr<const Program> program;   // normalized
  std::shared_ptr<const std::string> text;  // of it
};

using CompileResult = absl::StatusOr<std::shared_ptr<const CompiledProgram>>;

// How a caller gets a program.
struct CacheRequest {
  std::shared_ptr<const CompiledProgram> compiled = nullptr;  // if the caller has compiled it
  // After a stop, the caller waits no longer. A compilation that no caller waits for is stopped; if
  // it ends all the same, its program is kept.
  std::stop_token cancelled = {};
  // Compiles it, if this caller is the first that needs it. Ends soon after a stop of
  // `abandoned`, which it may request itself. Null: the device compiles it.
  std::function<CompileResult(const Program& program, const std::stop_source& abandoned)> compile =
      nullptr;
};

// Thread-safe. An operator in use outlives its eviction. Example:
//
//   std::unique_ptr<OperatorCache> cache = OperatorCache::Create(device, {.capacity = 64});
//   ASSIGN_OR_RETURN(CachedOperator found, cache->Get(validated, deadline));
class OperatorCache {
 public:
  using Done = std::function<void(const absl::StatusOr<CachedOperator>&)>;

  // `device` must outlive the cache.
  static std::unique_ptr<OperatorCache> Create(Device& device, OperatorCacheOptions options);

  // Errors are those of the device; they are returned to all waiting callers and are not cached.
  // Cancelled after a stop of `request.cancelled`. DeadlineExceeded ends a wait for another caller;
  // what this caller compiles itself has no deadline.
  absl::StatusOr<CachedOperator> Get(const Program& validated,
                                     absl::Time deadline = absl::InfiniteFuture(),
                                     CacheRequest request = {});
  absl::StatusOr<CachedOperator> Get(const OperatorDesc& validated,
                                     absl::Time deadline = absl::InfiniteFuture()) {
    return Get(ProgramOf(validated), deadline);
  }
  // The same without waiting for another caller: calls `done` once, without a lock. It is called
  // before this returns, or by the thread that compiles the program or that cancels the request.
  void Get(const Program& validated, CacheRequest request, Done done) {
    Join(validated, std::move(request), std::move(done));
  }

  // Returns the program only if it is cached. Neither compiles nor waits, and counts only hits. A
  // program of many nodes is compared once; after that it is found by its address.
  std::optional<CachedOperator> Find(const std::shared_ptr<const Program>& validated);
  // The same for ProgramOf an operator, without making it; a descriptor that is not normalized is
  // not found.
  std::optional<CachedOperator> FindNormalized(const OperatorDesc& validated);

  // Evicts operators, least recently used first, until so many of statistics().bytes are free. If
  // there are less, what takes memory is something else, such as kernels: half of the operators go,
  // and at least half of the bytes.
  void Evict(uint64_t bytes);

  // Forgets all operators after a device loss. A compilation in progress still serves its waiting
  // callers, but is not kept, and new callers do not join it.
  void Invalidate();

  OperatorCacheStatistics statistics() const;

 private:
  struct Compilation;

  // A caller that waits for a compilation. Destroyed without the lock, which its callback takes.
  struct Wait {
    explicit Wait(Done to_call) : done(std::move(to_call)) {}

    const absl::Time start = SteadyNow();
    Done done;  // under mutex_; null once the wait has ended
    std::shared_ptr<Compilation> compilation;
    std::optional<std::stop_callback<std::function<void()>>> cancels;
  };

  // A normalized program. The operator that it is ProgramOf, if any, is the same key.
  struct Key {
    explicit Key(std::shared_ptr<const Program> normalized)
        : program(std::move(normalized)),
          op(OperatorOf(*program)),
          hash(op == nullptr ? absl::HashOf(*program) : absl::HashOf(*op)) {}
    Key(std::shared_ptr<const Program> normalized, size_t its_hash)
        : program(std::move(normalized)), op(nullptr), hash(its_hash) {}

    std::shared_ptr<const Program> program;
    const OperatorDesc* op;
    size_t hash;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const Key& key) const { return key.hash; }
    size_t operator()(const OperatorDesc& op) const { return absl::HashOf(op); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Key& a, const Key& b) const {
      return a.program == b.program || *a.program == *b.program;
    }
    bool operator()(const Key& key, const OperatorDesc& op) const {
      return key.op != nullptr && *key.op == op;
    }
  };

  struct Compilation {
    Compilation(Key of, uint64_t its_generation)
        : key(std::move(of)),
          text(std::make_shared<const std::string>(ToString(*key.program))),
          generation(its_generation) {}

    CachedOperator AnswerOf(bool was_cached, absl::Duration duration) const {
      return {*result, was_cached, duration, key.program, text};
    }

    const Key key;
    const std::shared_ptr<const std::string> text;
    const uint64_t generation;
    const std::stop_source abandoned;
    std::vector<std::shared_ptr<Wait>> waits;  // under mutex_
    CompileResult result =
        absl::UnknownError("The compilation has not ended.");  // constant afterwards
  };

  struct Entry {
    std::shared_ptr<Compilation> compilation;
    uint64_t last_use = 0;
    bool compiled = false;  // the compilation has succeeded
  };

  // A program that callers have, and its key. Keeps neither alive.
  struct Known {
    std::weak_ptr<const Program> program;
    std::weak_ptr<const Program> normalized;
    size_t hash = 0;
  };

  OperatorCache(Device& device, OperatorCacheOptions options)
      : device_(device), options_(options) {}

  // The wait, which has ended if the program was cached or this caller has compiled it.
  std::shared_ptr<Wait> Join(const Program& validated, CacheRequest request, Done done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the wait of a caller that is gone.
  void Leave(Wait& wait) ABSL_LOCKS_EXCLUDED(mutex_);
  void Settle(const std::shared_ptr<Compilation>& compilation) ABSL_LOCKS_EXCLUDED(mutex_);
  void Keep(const std::shared_ptr<Compilation>& compilation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename KeyOrOperator>
  std::optional<CachedOperator> FindEntry(const KeyOrOperator& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<CachedOperator> FindKnown(const std::shared_ptr<const Program>& program)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EvictOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts what an entry has.
  void Hold(const ProgramCost& cost) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(const ProgramCost& cost) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Device& device_;
  const OperatorCacheOptions options_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<Key, Entry, Hash, Equal> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<const Program*, Known> known_ ABSL_GUARDED_BY(mutex_);
  // The number of entries that use each kernel.
  absl::flat_hash_map<uint64_t, size_t> kernel_uses_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<const void*, size_t> memory_uses_ ABSL_GUARDED_BY(mutex_);  // the same
  OperatorCacheStatistics statistics_ ABSL_GUARDED_BY(mutex_);
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;       // counts uses
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;  // counts calls of Invalidate
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_ENGINE_OPERATOR_CACHE_H_
