// Compiles operators through the cache: for executions, and for callers that ask for it.
#ifndef OPMILL_SERVER_EXECUTION_COMPILATIONS_H_
#define OPMILL_SERVER_EXECUTION_COMPILATIONS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/engine/device.h"
#include "kernels/engine/operator_cache.h"
#include "kernels/program/program.h"
#include "server/execution/admission.h"
#include "server/host/worker_pool.h"
#include "server/models/compile_limit.h"

namespace opmill {

// Thread-safe.
class Compilations {
 public:
  // What is known of a program before its execution has room.
  struct Found {
    std::optional<CachedOperator> cached;
    // Compiled to know how much memory its execution takes, and not in the cache: an operator
    // that is refused does not displace others.
    std::shared_ptr<const CompiledProgram> planned;
    absl::Duration duration;  // of that

    bool is_compiled() const { return cached.has_value() || planned != nullptr; }
    // The memory of an incremental run; 0 if the device needs the whole input.
    uint64_t incremental_bytes() const;
  };

  // What a caller waits for.
  struct Wanted {
    Program program;
    LimitedProgram limited;
    std::stop_token cancelled;  // after a stop, the caller waits no longer
  };

  // All must outlive it.
  Compilations(Device& device, OperatorCache& cache, WorkerPool& workers,
               const Admission& admission, const CompileLimit& limit)
      : device_(device), cache_(cache), workers_(workers), admission_(admission), limit_(limit) {}

  // Finds the program in the cache, or the program of an operator, which it sets. Otherwise, one
  // that may have incremental runs is compiled, unless the device needs the whole input.
  Found Find(const std::optional<OperatorDesc>& op, bool has_whole_input,
             std::shared_ptr<const Program>& program);
  // Whether compiling an operator takes so little time that a thread with other duties may do it.
  bool is_cheap() const { return device_.info().min_incremental_bytes != UINT64_MAX; }
  // The program, from `found` or compiled now.
  absl::StatusOr<CachedOperator> Get(const Program& program, absl::Time deadline, Found found);
  // The same for no caller.
  absl::StatusOr<CachedOperator> Get(const Program& program, const LimitedProgram& limited) {
    return ForCaller(limited, cache_.Get(program, absl::InfiniteFuture(),
                                         RequestOf(limited, limit_.background())));
  }
  // Compiles it now, unless another caller does. Calls `done` once, as OperatorCache::Get.
  void Get(const Program& program, const LimitedProgram& limited, std::stop_token cancelled,
           OperatorCache::Done done) {
    cache_.Get(program, RequestOf(limited, std::move(cancelled)),
               [this, limited, done = std::move(done)](const absl::StatusOr<CachedOperator>& got) {
                 done(ForCaller(limited, got));
               });
  }

  // Compiles on a worker. Programs that executions wait for come first. `done` is called once, as
  // by OperatorCache::Get; not if this returns an error.
  absl::Status Post(Wanted wanted, Admission::Load load, OperatorCache::Done done);

  // What was compiled for a lost device is of no use to the next.
  void ForgetAll() {
    workers_.Post([this] { cache_.Invalidate(); });
  }

 private:
  void Plan(const Program& program, Found& found);
  CacheRequest RequestOf(const LimitedProgram& limited, std::stop_token cancelled);
  // Another caller's compilation, with that one's limit, may have been the same: its error does not
  // name the other's model.
  absl::StatusOr<CachedOperator> ForCaller(const LimitedProgram& limited,
                                           absl::StatusOr<CachedOperator> got) const {
    if (TookTooLong(got.status())) return limit_.TooLong(limited);
    return got;
  }

  Device& device_;
  OperatorCache& cache_;
  WorkerPool& workers_;
  const Admission& admission_;
  const CompileLimit& limit_;
  std::atomic<uint32_t> posted_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_COMPILATIONS_H_
