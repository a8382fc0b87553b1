// A call with one request message, which starts with its headers. Protocols derive from it.
#ifndef OPMILL_SERVER_API_MESSAGE_CALL_H_
#define OPMILL_SERVER_API_MESSAGE_CALL_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/base/steady_time.h"
#include "server/api/service_parts.h"
#include "server/execution/execution.h"
#include "server/execution/open_calls.h"

namespace opmill {

// Its method is registered by RawMethods, so that a message that does not come, or not completely,
// is noticed (EndIfStalled). Deletes itself when the call is done.
class MessageCall : public RawReactor, public OpenCalls::Call {
 public:
  // Creates a call of a derived class and starts it, unless its headers are refused. `rpc` is a
  // string literal; the constructor takes the further arguments after those of MessageCall.
  template <typename Call, typename... Arguments>
  static RawReactor* Start(absl::string_view rpc, const ServiceParts& parts,
                           grpc::CallbackServerContext& context, Arguments&&... arguments) {
    RequestOrigin origin;
    const absl::Status begun = BeginRaw(rpc, parts, context, origin);
    if (!begun.ok()) return opmill::Refuse(parts, origin, begun);
    MessageCall* const call =
        new Call(context, std::move(origin), parts, std::forward<Arguments>(arguments)...);
    call->StartReading();
    return call;
  }

  // All arguments must outlive the call.
  MessageCall(grpc::CallbackServerContext& context, RequestOrigin origin, const ServiceParts& parts)
      : context_(context), parts_(parts), origin_(std::move(origin)) {}

  void OnReadDone(bool ok) final ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCancel() final;
  void OnDone() override;

  void Drain() final ABSL_LOCKS_EXCLUDED(mutex_);
  void Abort(const absl::Status& why) final ABSL_LOCKS_EXCLUDED(mutex_);
  void EndIfStalled(absl::Time now, absl::Duration timeout) override ABSL_LOCKS_EXCLUDED(mutex_);

 protected:
  virtual absl::string_view message_type() const = 0;
  // The message has arrived. It lives as long as the call, unless its bytes are taken.
  virtual void Receive(grpc::ByteBuffer& message) = 0;
  // Ends the work for the message, unless the call has ended. Called by any thread, at any time
  // after the message has arrived, possibly before Receive.
  virtual void Cancel(const absl::Status& why) = 0;

  // These end a call without further messages; one of them is called, once. A worker must not use
  // the call afterwards, unless it is a user.
  void Answer(grpc::ByteBuffer response);
  // `desc` is null if the request has no valid operator.
  void Refuse(const RequestOrigin& origin, const OperatorDesc* desc, const absl::Status& why);

  // Keeps the call until Release, which may delete it.
  void AddUser() { ++users_; }
  void Release();

  grpc::CallbackServerContext& context() { return context_; }
  const ServiceParts& parts() const { return parts_; }
  // Of the derived class, once the message has arrived.
  RequestOrigin& origin() { return origin_; }

 private:
  // Only once the object is complete: from then on other threads call its methods.
  void StartReading();
  // Ends the call if its message has not come yet; false if it has.
  bool EndWithoutMessage(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  enum class Phase { kWaits, kHasMessage, kEndedWithout };
  // False if the call no longer waits for its message.
  bool StopWaiting(Phase next) ABSL_LOCKS_EXCLUDED(mutex_);

  grpc::CallbackServerContext& context_;
  const ServiceParts& parts_;
  RequestOrigin origin_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
  std::atomic<uint32_t> users_ = 1;  // gRPC, until OnDone, and those that were added

  const absl::Time waits_since_ = SteadyNow();
  absl::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kWaits;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_MESSAGE_CALL_H_
