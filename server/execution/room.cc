#include "server/execution/room.h"

#include <utility>

#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"

namespace opmill {

Room::Room(Device& device, const Admission& admission, WaitingExecutions& waiting,
           Statistics& statistics, const Limits& limits)
    : device_(device),
      admission_(admission),
      waiting_(waiting),
      memory_(limits.max_bytes_in_flight),
      callers_(TokenBucket(limits.caller.rate), statistics),
      executions_(limits.max_executions),
      streams_(std::make_shared<SharedLimit>(limits.max_streams)) {}

const std::shared_ptr<CallerAccount>& Room::AccountOf(RequestOrigin& origin) {
  if (origin.account == nullptr) {
    origin.account = callers_.Find(origin.caller, origin.peer, SteadyNow());
  }
  return origin.account;
}

absl::StatusOr<TensorBuffers> Room::Take(const BufferSizes& sizes,
                                         const std::shared_ptr<CallerAccount>& caller,
                                         EndExecution end) {
  for (;;) {
    absl::StatusOr<TensorBuffers> buffers;
    {
      const absl::MutexLock lock(&caller->begin_mutex);
      RETURN_IF_ERROR(
          admission_.CheckCaller(sizes, caller->executions.amount, caller->bytes.amount));
      buffers = Reserve(sizes, caller);
    }
    if (buffers.ok()) {
      const absl::Status allocated = buffers->AllocateInputs(device_, sizes);
      if (allocated.ok()) return buffers;
      ReturnPlace(*caller);
      buffers = Admission::OutOfMemory(allocated, executions());
    }
    if (!absl::IsResourceExhausted(buffers.status())) return buffers;
    if (!EndStalled(*caller, end)) {
      RememberRefused(caller);
      return buffers;
    }
  }
}

// Takes the place and the bytes of an execution.
absl::StatusOr<TensorBuffers> Room::Reserve(const BufferSizes& sizes,
                                            const std::shared_ptr<CallerAccount>& caller) {
  const bool has_others = callers_.several();
  ASSIGN_OR_RETURN(
      TensorBuffers buffers,
      TensorBuffers::Reserve(memory_, sizes, std::shared_ptr<Holding>(caller, &caller->bytes),
                             has_others));
  const uint64_t up_to = executions_.LimitFor(caller->executions, 1, has_others);
  if (!executions_.TryTake(caller->executions, 1, up_to)) {
    return admission_.NoPlaceForExecution(up_to);
  }
  return buffers;
}

// Ends some executions that hold memory and receive no input, or too slowly: those of `caller`
// itself that receive none, and those of callers with more than their shares. Returns false if
// there are none.
bool Room::EndStalled(const CallerAccount& caller, EndExecution end) {
  using Stall = WaitingExecutions::Stall;
  const ExecutionQueues::Stalled stalled =
      waiting_.FindStalled([&](const CallerAccount& owner, Stall why) {
        return &owner == &caller ? why == Stall::kNoInput : ExceedsShare(owner, caller);
      });
  const absl::Status displaced =
      Admission::Displaced(stalled.why == Stall::kNoInput ? Admission::Displacement::kNoInput
                                                          : Admission::Displacement::kSlowInput);
  for (const auto& execution : stalled.executions) end(execution, displaced);
  return !stalled.executions.empty();
}

absl::Status Room::TakeStream(RequestOrigin& origin) {
  const std::shared_ptr<CallerAccount> caller = AccountOf(origin);
  const uint64_t up_to = streams_->LimitFor(caller->streams, 1, callers_.several());
  if (!streams_->TryTake(caller->streams, 1, up_to)) return admission_.NoPlaceForStream(up_to);
  origin.stream_place = std::shared_ptr<void>(
      caller.get(), [caller, streams = streams_](void*) { streams->Return(caller->streams, 1); });
  return absl::OkStatus();
}

void Room::RememberRefused(const std::shared_ptr<CallerAccount>& caller) {
  const absl::MutexLock lock(&mutex_);
  if (refused_ == nullptr || caller->bytes.amount < refused_->bytes.amount) refused_ = caller;
}

std::shared_ptr<const CallerAccount> Room::TakeRefused() {
  const absl::MutexLock lock(&mutex_);
  return std::exchange(refused_, nullptr);
}

bool Room::ExceedsShare(const CallerAccount& owner, const CallerAccount& asking) const {
  return executions_.ExceedsShare(owner.executions, asking.executions) ||
         memory_.shared().ExceedsShare(owner.bytes, asking.bytes);
}

}  // namespace opmill
