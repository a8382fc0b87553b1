// Background maintenance: stalled calls, connections that flood the server, memory that is no
// longer needed, and the limit on the memory of the process as a whole.
#ifndef OPMILL_SERVER_HOUSEKEEPER_H_
#define OPMILL_SERVER_HOUSEKEEPER_H_

#include <cstdint>
#include <limits>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kernels/base/steady_time.h"
#include "kernels/engine/device.h"
#include "kernels/engine/operator_cache.h"
#include "server/config/options.h"
#include "server/execution/executor.h"
#include "server/execution/open_calls.h"
#include "server/network/connections.h"
#include "server/tensors/tensor_store.h"

namespace opmill {

// Each part of the memory limit has its own limit (server/config/memory_plan.h), which is enforced
// before memory is allocated. The housekeeper handles memory that belongs to no part, or that
// exceeds its part. Near the limit it returns memory that is kept for reuse to the system. Closer
// to the limit it also releases compiled operators with their kernels, and new work is refused.
class Housekeeper {
 public:
  // All arguments must outlive this object.
  Housekeeper(Device& device, OperatorCache& cache, TensorStore& tensors, Executor& executor,
              OpenCalls& open_calls, Connections& connections, const Limits& limits);
  ~Housekeeper();

 private:
  void Run();
  bool StopsWithinATick() ABSL_LOCKS_EXCLUDED(mutex_);
  void WatchMemory(absl::Time now);
  void EndStalled(absl::Time now);
  void EndUnread(absl::Time now);
  void ReleaseWhenIdle(absl::Time now);
  // Returns free memory to the system if much of it has accumulated.
  void TrimIfWorthIt(absl::Time now);
  void ReleaseMemory();

  Device& device_;
  OperatorCache& cache_;
  TensorStore& tensors_;
  Executor& executor_;
  OpenCalls& open_calls_;
  Connections& connections_;
  const uint64_t memory_limit_;
  const absl::Duration stall_timeout_;
  absl::Time last_stall_check_ = absl::InfinitePast();
  absl::Time last_unread_check_ = absl::InfinitePast();
  absl::Time last_release_ = absl::InfinitePast();
  absl::Time last_closed_ = absl::InfinitePast();  // a connection, because memory was short
  absl::Time idle_since_ = absl::InfiniteFuture();
  bool is_released_ = true;  // no execution has ended since the last release
  absl::Time last_trim_check_ = absl::InfinitePast();
  int64_t least_unused_bytes_ = std::numeric_limits<int64_t>::max();  // since the last trim

  absl::Mutex mutex_;
  SteadyCondVar stops_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // declared last: it uses the members above
};

}  // namespace opmill

#endif  // OPMILL_SERVER_HOUSEKEEPER_H_
