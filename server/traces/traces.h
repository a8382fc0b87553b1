// Sends the spans of calls to a collector, over OTLP. Calls never wait for that: what the collector
// does not take in time is dropped, and counted.
#ifndef OPMILL_SERVER_TRACES_TRACES_H_
#define OPMILL_SERVER_TRACES_TRACES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "kernels/base/steady_time.h"
#include "server/config/options.h"
#include "server/traces/span_encoder.h"
#include "server/traces/trace_context.h"
#include "server/traces/traced_call.h"

namespace opmill {

// Thread-safe, except Stop.
class Traces {
 public:
  // Calls that wait to be sent, or are being sent. One takes about a kilobyte.
  static constexpr uint64_t kMostCalls = 8192;

  // `device` is what the spans say of the server. Does not wait for the collector.
  static absl::StatusOr<std::unique_ptr<Traces>> Create(const TraceOptions& options,
                                                        std::string device);
  ~Traces() { Stop(absl::ZeroDuration()); }
  Traces(const Traces&) = delete;
  Traces& operator=(const Traces&) = delete;

  // The trace that a call belongs to, with the span of its caller; nullopt if it has none. The
  // caller decides, by its traceparent; otherwise chance does, unless `may_begin` is false.
  std::optional<TraceContext> Sample(absl::string_view traceparent, bool may_begin) const;

  // The call has ended. Drops it if too many wait.
  void Add(std::unique_ptr<TracedCall> call);

  // Sends waiting calls for at most this long. The rest, and all later ones, are dropped.
  void Stop(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls whose spans the collector has taken, and those that were dropped.
  uint64_t exported() const { return exported_.load(std::memory_order_relaxed); }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  using Calls = std::vector<std::unique_ptr<TracedCall>>;

  Traces(const TraceOptions& options, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
         std::string device);

  void Export() ABSL_LOCKS_EXCLUDED(mutex_);
  // Until a batch is complete or old enough. False after Stop.
  bool AwaitBatch() ABSL_LOCKS_EXCLUDED(mutex_);
  Calls Take();
  absl::Status Send(absl::Span<const std::unique_ptr<TracedCall>> calls)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `waits` for a collector that is away, until the timeout.
  grpc::Status Call(const grpc::ByteBuffer& request, bool waits, absl::Duration timeout,
                    grpc::ByteBuffer& response) ABSL_LOCKS_EXCLUDED(mutex_);
  void Drop(uint64_t calls) { dropped_.fetch_add(calls, std::memory_order_relaxed); }
  void LogDropped(const absl::Status& why);

  const double sample_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub collector_;

  std::atomic<TracedCall*> newest_ = nullptr;  // a list; the thread takes it as a whole
  std::atomic<uint64_t> waiting_ = 0;          // in the list, or being sent
  std::atomic<uint64_t> exported_ = 0;
  std::atomic<uint64_t> dropped_ = 0;
  std::atomic<bool> has_stopped_ = false;

  absl::Mutex mutex_;
  SteadyCondVar changed_;
  absl::Time stop_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();

  // Of the thread.
  SpanEncoder encoder_;
  absl::Time logged_at_ = absl::InfinitePast();
  uint64_t logged_ = 0;
  std::thread thread_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_TRACES_TRACES_H_
