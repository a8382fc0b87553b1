// The server: owns all parts, in the order of their construction.
#ifndef OPMILL_SERVER_SERVER_H_
#define OPMILL_SERVER_SERVER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"
#include "kernels/engine/device.h"
#include "kernels/engine/operator_cache.h"
#include "server/access/access.h"
#include "server/api/operator_service.h"
#include "server/config/memory_plan.h"
#include "server/config/options.h"
#include "server/execution/executor.h"
#include "server/execution/model_programs.h"
#include "server/execution/open_calls.h"
#include "server/host/worker_pool.h"
#include "server/housekeeper.h"
#include "server/http/rest_server.h"
#include "server/metrics/metrics_endpoint.h"
#include "server/models/inline_models.h"
#include "server/models/model_repository.h"
#include "server/models/model_table.h"
#include "server/network/connections.h"
#include "server/network/listener.h"
#include "server/observe/statistics.h"
#include "server/oip/inference_service.h"
#include "server/shared_memory/shared_memory.h"
#include "server/traces/traces.h"

namespace opmill {

class Server {
 public:
  // The server accepts calls when this returns. After a stop of `stopped` it loads no more models,
  // and may return Unavailable.
  static absl::StatusOr<std::unique_ptr<Server>> Create(const ServerOptions& options,
                                                        const std::stop_token& stopped = {});
  ~Server();

  // The requested addresses, with a port of 0 replaced by the selected one.
  const std::vector<std::string>& addresses() const { return listener_->addresses(); }

  // Reads certificates and tokens again.
  void ReloadAccess() { access_->ReloadSoon(); }

  // Sets health to NOT_SERVING, refuses new work, and returns when the work in progress has ended.
  // If the drain timeout expires (DeadlineExceeded) or AbortInFlight is called (Cancelled), the
  // remaining work has ended with Unavailable.
  absl::Status Drain() ABSL_LOCKS_EXCLUDED(phase_mutex_);
  // True if the device still works for calls that have ended. Destroying the server waits for it,
  // which may take long.
  bool device_is_busy() const { return executor_->has_runs(); }
  // Ends the work in progress with Unavailable. May be called from another thread during Drain.
  void AbortInFlight();

 private:
  explicit Server(const ServerOptions& options) : options_(options) {}
  absl::Status Initialize(const std::stop_token& stopped);
  absl::Status DrainCalls() ABSL_LOCKS_EXCLUDED(phase_mutex_);
  void LimitTransports();
  absl::Status ServeTensorFiles();
  // If some are to be put back after a loss of the device: begins that, on a thread of its own.
  void PutTensorsBack() ABSL_EXCLUSIVE_LOCKS_REQUIRED(phase_mutex_);
  absl::Status Listen() ABSL_LOCKS_EXCLUDED(phase_mutex_);
  void DeviceChanged(const absl::Status& status) ABSL_LOCKS_EXCLUDED(phase_mutex_);
  // Whether the server accepts new calls, and what /readyz says. Announce updates health.
  Readiness ReadinessNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(phase_mutex_);
  void Announce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(phase_mutex_);

  ServerOptions options_;
  MemoryPlan memory_;
  std::unique_ptr<Access> access_;
  std::shared_ptr<Connections> connections_;  // shared with rules that transports may still have
  enum class Phase { kStarting, kServing, kDraining, kStopped };
  mutable absl::Mutex phase_mutex_;
  Phase phase_ ABSL_GUARDED_BY(phase_mutex_) = Phase::kStarting;
  bool device_is_available_ ABSL_GUARDED_BY(phase_mutex_) = true;
  std::unique_ptr<Device> device_;  // calls DeviceChanged until it is destroyed
  std::unique_ptr<OperatorCache> cache_;
  std::unique_ptr<TensorStore> tensors_;
  std::unique_ptr<WorkerPool> put_back_;  // null if no tensor is put back
  Statistics statistics_;
  std::unique_ptr<Traces> traces_;  // null if no call is traced
  OpenCalls open_calls_;
  std::shared_ptr<ByteBudget> model_budget_;     // shared with all models
  std::unique_ptr<InlineModels> inline_models_;  // workers of the executor read into it
  std::unique_ptr<Executor> executor_;
  std::shared_ptr<ModelPrograms> programs_;
  std::unique_ptr<Housekeeper> housekeeper_;
  std::unique_ptr<SharedMemory> shared_memory_;
  ModelTable models_;
  std::unique_ptr<ModelRepository> repository_;
  std::unique_ptr<OperatorService> service_;
  std::unique_ptr<oip::InferenceService> inference_service_;
  std::unique_ptr<grpc::Server> grpc_server_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<RestServer> rest_;          // null if disabled
  std::atomic<uint32_t> cut_executions_ = 0;  // ended by AbortInFlight
  std::unique_ptr<HttpEndpoint> metrics_;     // null if disabled; declared last: it reads the rest
};

}  // namespace opmill

#endif  // OPMILL_SERVER_SERVER_H_
