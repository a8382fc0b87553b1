#include "server/execution/waiting_executions.h"

#include <utility>

#include "kernels/base/steady_time.h"

namespace opmill {

void WaitingExecutions::Enter(const std::shared_ptr<Execution>& execution) {
  const absl::MutexLock lock(&mutex_);
  queues_.Enter(execution, SteadyNow());
}

void WaitingExecutions::Received(Execution& execution, uint64_t bytes, bool awaits_caller) {
  const absl::MutexLock lock(&mutex_);
  const absl::Time now = SteadyNow();
  execution.request().origin.account->pace.Add(bytes, now);
  if (awaits_caller) {
    queues_.AwaitInput(execution, now);
  } else {
    queues_.AwaitOperator(execution, now);
  }
}

void WaitingExecutions::AwaitServer(Execution& execution) {
  const absl::MutexLock lock(&mutex_);
  queues_.AwaitOperator(execution, SteadyNow());
}

void WaitingExecutions::AwaitDevice(Execution& execution, uint64_t memory_bytes,
                                    uint64_t run_bytes) {
  const absl::MutexLock lock(&mutex_);
  queues_.AwaitDevice(execution, memory_bytes, SteadyNow(), run_bytes);
}

void WaitingExecutions::AwaitDevice(const std::vector<Work>& works) {
  const absl::Time now = SteadyNow();
  const absl::MutexLock lock(&mutex_);
  for (const Work& work : works) {
    queues_.AwaitDevice(*work.execution, work.memory_bytes, now, work.run_bytes);
  }
}

void WaitingExecutions::Remove(Execution& execution) {
  const absl::MutexLock lock(&mutex_);
  queues_.Remove(execution);
}

ExecutionQueues::Stalled WaitingExecutions::FindStalled(
    absl::FunctionRef<bool(const CallerAccount& owner, Stall why)> may_end) {
  const absl::Time now = SteadyNow();
  const absl::MutexLock lock(&mutex_);
  return queues_.FindStalled(now, [&](const Execution& execution, Stall why) {
    const CallerAccount& owner = *execution.request().origin.account;
    if (why == Stall::kSlowInput && !owner.pace.IsSlow(now)) return false;
    return may_end(owner, why);
  });
}

void WaitingExecutions::SubmitReady(
    absl::FunctionRef<void(const std::shared_ptr<Execution>&)> submit) {
  // A run that ends within Device::Run comes back here from its callback. The loop below goes on
  // with the next one; a call of Run from there would have to leave it to another thread.
  thread_local const WaitingExecutions* submitting = nullptr;
  if (submitting == this) return;
  const WaitingExecutions* const outer = std::exchange(submitting, this);
  while (const std::shared_ptr<Execution> next = Next()) submit(next);
  submitting = outer;
}

std::shared_ptr<Execution> WaitingExecutions::Next() {
  const absl::MutexLock lock(&mutex_);
  std::shared_ptr<Execution> next = queues_.NextForDevice();
  if (next != nullptr) ++runs_;
  return next;
}

void WaitingExecutions::TakeAlong(const std::vector<std::shared_ptr<Execution>>& executions) {
  const absl::MutexLock lock(&mutex_);
  for (const auto& execution : executions) queues_.TakeAlong(*execution);
}

void WaitingExecutions::RunBegins() {
  const absl::MutexLock lock(&mutex_);
  ++runs_;
}

void WaitingExecutions::RunEnded(Execution& execution) {
  const absl::MutexLock lock(&mutex_);
  queues_.RunEnded(execution);
}

void WaitingExecutions::CallbackEnded() {
  const absl::MutexLock lock(&mutex_);
  --runs_;
}

bool WaitingExecutions::has_runs() {
  const absl::MutexLock lock(&mutex_);
  return runs_ > 0;
}

void WaitingExecutions::AwaitRuns() {
  const auto all_ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return runs_ == 0; };
  const absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&all_ended));
}

}  // namespace opmill
