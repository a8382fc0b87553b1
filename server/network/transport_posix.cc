// Applies TransportRules to the connections of gRPC 1.51, whose own limits on header fields, on the
// length of messages and on calls that are reset come too late or do not apply to a peer that never
// acknowledges SETTINGS. gRPC resolves the symbols of its HTTP/2 transport at run time, so the
// functions of this program replace gRPC's and call them. gRPC calls the functions of one transport
// by one thread at a time.
#include <dlfcn.h>
#include <grpc/slice.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "grpcpp/grpcpp.h"
#include "kernels/base/steady_time.h"
#include "server/network/connection_socket_posix.h"
#include "server/network/transport_rules.h"
#include "server/observe/log.h"

#if GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR == 51

// These match gRPC's src/core/ext/transport/chttp2/transport/internal.h and
// src/core/lib/iomgr/endpoint.h in names and in how arguments are passed.
struct grpc_endpoint;
struct grpc_transport;
struct grpc_chttp2_transport {  // NOLINT(readability-identifier-naming): gRPC's
  ~grpc_chttp2_transport();
};
struct grpc_chttp2_stream {  // NOLINT(readability-identifier-naming): gRPC's
  ~grpc_chttp2_stream();
};
grpc_endpoint* grpc_transport_get_endpoint(grpc_transport* transport);
absl::string_view grpc_endpoint_get_peer(grpc_endpoint* endpoint);
int grpc_endpoint_get_fd(grpc_endpoint* endpoint);
absl::Status grpc_chttp2_perform_read(grpc_chttp2_transport* transport, const grpc_slice& slice);
grpc_chttp2_stream* grpc_chttp2_parsing_accept_stream(grpc_chttp2_transport* transport,
                                                      uint32_t id);
void grpc_chttp2_cancel_stream(grpc_chttp2_transport* transport, grpc_chttp2_stream* stream,
                               absl::Status why);

namespace opmill {
namespace {

constexpr absl::Duration kLeastBetweenReports = absl::Seconds(1);
constexpr uint8_t kBeginOfPreface = 'P';  // of "PRI * HTTP/2.0"

template <typename Function>
Function* NextOf(const char* symbol) {
  void* const next = dlsym(RTLD_NEXT, symbol);
  if (next == nullptr) {  // another build of gRPC than this program was compiled for
    LogLine(LogLevel::kError, "transport").Add("missing", symbol);
    std::abort();
  }
  return reinterpret_cast<Function*>(next);
}

// The symbol has the namespace of Abseil's version in it, so its text comes from the dynamic
// linker.
const auto& NextCancelStream() {
  using CancelStream = void(grpc_chttp2_transport*, grpc_chttp2_stream*, absl::Status);
  static auto* const next = [] {
    Dl_info own = {};
    const bool found = dladdr(reinterpret_cast<void*>(&grpc_chttp2_cancel_stream), &own) != 0;
    return NextOf<CancelStream>(found && own.dli_sname != nullptr ? own.dli_sname : "");
  }();
  return next;
}

// At most one line in a while, however many messages are refused.
bool IsTimeToLog() {
  static std::atomic<absl::Time> last = absl::InfinitePast();
  const absl::Time now = SteadyNow();
  absl::Time before = last.load(std::memory_order_relaxed);
  return now - before >= kLeastBetweenReports && last.compare_exchange_strong(before, now);
}

// One connection, with the calls whose streams gRPC has not released.
class GuardedTransport {
 public:
  using PerformRead = absl::Status(grpc_chttp2_transport*, const grpc_slice&);

  GuardedTransport(std::shared_ptr<const TransportRules> rules, std::string peer,
                   const std::string& address)
      : rules_(std::move(rules)),
        peer_(std::move(peer)),
        account_(rules_->budget->Open(peer_, address, SteadyNow())),
        calls_(rules_->message_limit) {}
  ~GuardedTransport() {
    for (const auto& [id, call] : open_) {
      rules_->budget->End(*account_, call.bytes, /*is_completed=*/false, SteadyNow());
    }
    rules_->budget->Close(account_);
  }
  GuardedTransport(const GuardedTransport&) = delete;
  GuardedTransport& operator=(const GuardedTransport&) = delete;

  absl::Status Read(grpc_chttp2_transport* transport, const grpc_slice& slice, PerformRead& next) {
    const absl::Span<const uint8_t> bytes(GRPC_SLICE_START_PTR(slice), GRPC_SLICE_LENGTH(slice));
    for (size_t passed = 0; passed < bytes.size();) {
      const Http2Calls::Step step = calls_.Read(bytes.subspan(passed));
      const size_t end = passed + step.consumed;
      absl::Status status = Allow(step);
      if (status.ok()) status = AllowControlFrames();
      if (status.ok()) status = next(transport, grpc_slice_sub_no_ref(slice, passed, end));
      if (!status.ok()) return status;
      if (step.event == Http2Calls::Event::kCall) ForgetIfIgnored(step.stream);
      if (step.event == Http2Calls::Event::kLongMessage) RefuseMessage(transport, step);
      passed = end;
    }
    return absl::OkStatus();
  }

  void Accepted(uint32_t id, grpc_chttp2_stream* stream) { open_[id].stream = stream; }

  // The call ends without an answer of the server.
  void Abandon(uint32_t id) {
    const auto call = open_.find(id);
    if (call != open_.end()) call->second.is_abandoned = true;
  }

  void Released(uint32_t id) {
    const auto call = open_.find(id);
    const bool is_completed = !call->second.is_abandoned;
    rules_->budget->End(*account_, call->second.bytes, is_completed, SteadyNow());
    open_.erase(call);
    calls_.Forget(id);
  }

 private:
  struct Call {
    uint64_t bytes = CallBudget::kBytesOfCall;
    grpc_chttp2_stream* stream = nullptr;
    bool is_abandoned = false;
  };

  // Before gRPC reads the bytes of the step. An error closes the connection.
  absl::Status Allow(const Http2Calls::Step& step) {
    std::optional<CallBudget::Closing> closing;
    switch (step.event) {
      case Http2Calls::Event::kNone:
      case Http2Calls::Event::kLongMessage:
        return absl::OkStatus();
      case Http2Calls::Event::kCall:
        open_[step.stream] = Call();
        closing = rules_->budget->Begin(*account_, SteadyNow());
        break;
      case Http2Calls::Event::kMetadata:
        open_[step.stream].bytes += step.bytes;
        closing = rules_->budget->AddMetadata(*account_, step.bytes, SteadyNow());
        break;
      case Http2Calls::Event::kReset:
        Abandon(step.stream);
        return absl::OkStatus();
      case Http2Calls::Event::kTooMuchMetadata:
        rules_->close(peer_, Connections::Reason::kMetadata);
        return absl::ResourceExhaustedError("The metadata of a call are too long.");
      case Http2Calls::Event::kInvalid:
        return absl::InvalidArgumentError("A header block is invalid.");
    }
    if (!closing.has_value()) return absl::OkStatus();
    rules_->close(closing->peer, closing->excess == CallBudget::Excess::kOpenCalls
                                     ? Connections::Reason::kCalls
                                     : Connections::Reason::kAbandoned);
    if (closing->peer != peer_) return absl::OkStatus();
    return absl::ResourceExhaustedError("The connection has too many calls.");
  }

  absl::Status AllowControlFrames() {
    const uint64_t count = calls_.control_frames() - counted_control_frames_;
    counted_control_frames_ += count;
    if (count == 0 || rules_->budget->AllowControlFrames(*account_, count, SteadyNow())) {
      return absl::OkStatus();
    }
    rules_->close(peer_, Connections::Reason::kControl);
    return absl::ResourceExhaustedError("The connection sends too many SETTINGS and PING frames.");
  }

  // gRPC creates no stream after it has said goodbye.
  void ForgetIfIgnored(uint32_t id) {
    const auto call = open_.find(id);
    if (call != open_.end() && call->second.stream == nullptr) Released(id);
  }

  void RefuseMessage(grpc_chttp2_transport* transport, const Http2Calls::Step& step) {
    const auto call = open_.find(step.stream);
    if (call == open_.end()) return;
    const absl::Status why = absl::ResourceExhaustedError(
        absl::StrCat("Received message larger than max (", step.bytes, " vs. ", step.limit, ")"));
    if (IsTimeToLog()) LogLine(LogLevel::kInfo, "refuse_message").Add("peer", peer_).Add(why);
    NextCancelStream()(transport, call->second.stream, why);
  }

  const std::shared_ptr<const TransportRules> rules_;
  const std::string peer_;
  CallBudget::Account* const account_;
  Http2Calls calls_;
  uint64_t counted_control_frames_ = 0;
  absl::flat_hash_map<uint32_t, Call> open_;
};

// The transports and streams of this process.
class Guards {
 public:
  static Guards& Get() {
    static Guards& guards = *new Guards();
    return guards;
  }

  // Null if there are no rules, or none for this transport. `bytes` are the next that arrive.
  GuardedTransport* Of(grpc_chttp2_transport* transport, const grpc_slice& bytes)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const absl::MutexLock lock(&mutex_);
      const auto found = transports_.find(transport);
      if (found != transports_.end()) return found->second.get();
    }
    std::shared_ptr<const TransportRules> rules = CurrentTransportRules();
    if (rules == nullptr || GRPC_SLICE_LENGTH(bytes) == 0) return nullptr;
    // A connection that this process has made, to a collector of traces. gRPC refuses callers that
    // do not begin with the preface.
    if (*GRPC_SLICE_START_PTR(bytes) != kBeginOfPreface) {
      const absl::MutexLock lock(&mutex_);
      transports_[transport] = nullptr;
      return nullptr;
    }
    grpc_endpoint* const endpoint =
        grpc_transport_get_endpoint(reinterpret_cast<grpc_transport*>(transport));
    std::string peer = WithoutPercentEncoding(grpc_endpoint_get_peer(endpoint));
    std::string address = peer.substr(0, peer.rfind(':'));
    if (absl::StartsWith(peer, "unix:")) {  // as the listener names it
      peer = UnixPeerName(grpc_endpoint_get_fd(endpoint));
      address = "unix";
    }
    auto guarded = std::make_unique<GuardedTransport>(std::move(rules), std::move(peer), address);
    const absl::MutexLock lock(&mutex_);
    return (transports_[transport] = std::move(guarded)).get();
  }

  void Accepted(grpc_chttp2_transport* transport, uint32_t id, grpc_chttp2_stream* stream)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    const auto found = transports_.find(transport);
    if (found == transports_.end() || found->second == nullptr) return;
    found->second->Accepted(id, stream);
    streams_[stream] = {found->second.get(), id};
  }

  void Abandon(grpc_chttp2_stream* stream) ABSL_LOCKS_EXCLUDED(mutex_) {
    const Stream known = Find(stream);
    if (known.transport != nullptr) known.transport->Abandon(known.id);
  }

  void Released(grpc_chttp2_stream* stream) ABSL_LOCKS_EXCLUDED(mutex_) {
    const Stream known = Find(stream);
    if (known.transport == nullptr) return;
    known.transport->Released(known.id);
    const absl::MutexLock lock(&mutex_);
    streams_.erase(stream);
  }

  void Released(grpc_chttp2_transport* transport) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::unique_ptr<GuardedTransport> released;  // destroyed without the lock
    const absl::MutexLock lock(&mutex_);
    const auto found = transports_.find(transport);
    if (found == transports_.end()) return;
    released = std::move(found->second);
    transports_.erase(found);
  }

 private:
  struct Stream {
    GuardedTransport* transport = nullptr;
    uint32_t id = 0;
  };

  Stream Find(grpc_chttp2_stream* stream) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    const auto found = streams_.find(stream);
    return found == streams_.end() ? Stream() : found->second;
  }

  absl::Mutex mutex_;
  absl::flat_hash_map<grpc_chttp2_transport*, std::unique_ptr<GuardedTransport>> transports_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<grpc_chttp2_stream*, Stream> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace
}  // namespace opmill

absl::Status grpc_chttp2_perform_read(grpc_chttp2_transport* transport, const grpc_slice& slice) {
  static auto* const next = opmill::NextOf<opmill::GuardedTransport::PerformRead>(
      "_Z24grpc_chttp2_perform_readP21grpc_chttp2_transportRK10grpc_slice");
  opmill::GuardedTransport* const guarded = opmill::Guards::Get().Of(transport, slice);
  return guarded == nullptr ? next(transport, slice) : guarded->Read(transport, slice, *next);
}

grpc_chttp2_stream* grpc_chttp2_parsing_accept_stream(grpc_chttp2_transport* transport,
                                                      uint32_t id) {
  static auto* const next = opmill::NextOf<grpc_chttp2_stream*(grpc_chttp2_transport*, uint32_t)>(
      "_Z33grpc_chttp2_parsing_accept_streamP21grpc_chttp2_transportj");
  grpc_chttp2_stream* const stream = next(transport, id);
  if (stream != nullptr) opmill::Guards::Get().Accepted(transport, id, stream);
  return stream;
}

void grpc_chttp2_cancel_stream(grpc_chttp2_transport* transport, grpc_chttp2_stream* stream,
                               absl::Status why) {
  opmill::Guards::Get().Abandon(stream);
  opmill::NextCancelStream()(transport, stream, std::move(why));
}

grpc_chttp2_stream::~grpc_chttp2_stream() {
  static auto* const next =
      opmill::NextOf<void(grpc_chttp2_stream*)>("_ZN18grpc_chttp2_streamD1Ev");
  opmill::Guards::Get().Released(this);  // first: gRPC may release the transport too
  next(this);
}

grpc_chttp2_transport::~grpc_chttp2_transport() {
  static auto* const next =
      opmill::NextOf<void(grpc_chttp2_transport*)>("_ZN21grpc_chttp2_transportD1Ev");
  opmill::Guards::Get().Released(this);
  next(this);
}

#endif
