// The executions that have not been given to the device yet, and the choice of the next one.
#ifndef OPMILL_SERVER_EXECUTION_EXECUTION_QUEUES_H_
#define OPMILL_SERVER_EXECUTION_EXECUTION_QUEUES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/time/time.h"
#include "server/execution/fair_queue.h"

namespace opmill {

class CallerAccount;
class Execution;

// Executions of at least this much memory are large.
inline constexpr uint64_t kLargeBytes = uint64_t{4} << 20;

// The executions that are ready for the device, by caller.
using ReadyQueue = FairQueue<const CallerAccount*, std::shared_ptr<Execution>>;

// The position of an execution in its queue. Used only by ExecutionQueues.
struct QueuePlace {
  std::list<std::shared_ptr<Execution>>* queue = nullptr;  // null if it is in none of these
  std::list<std::shared_ptr<Execution>>::iterator position;
  ReadyQueue* ready = nullptr;  // the same
  ReadyQueue::Place ready_position;
  absl::Time entered;  // into the first queue
  absl::Time since;    // into this queue, or when it last received input there
  uint64_t work_bytes = 0;
  bool is_running = false;  // it counts as running
};

// Not thread-safe. An execution that was removed or given to the device is in no queue and does not
// return to one.
//
// The device gets small executions (less than 4 MiB of memory), large ones, and huge ones (more
// than 32 MiB), each in an order that gives all callers the same share of its work. It gets no more
// than keeps it busy; all others wait here, where a cancelled execution costs it nothing:
// - 192 small ones. While several callers use the device, each caller has an equal part of them,
//   and of one caller they take at most 16 MiB.
// - large ones that together take 32 MiB, or one that is huge. The next one waits until there is
//   room for it, and others do not pass it. A huge execution of one caller does not keep large ones
//   of others from the device.
class ExecutionQueues {
 public:
  // How long a caller counts as using the device after its last execution there.
  static constexpr absl::Duration kUses = absl::Seconds(10);

  ExecutionQueues();

  // Adds an execution, which waits for its first input.
  void Enter(const std::shared_ptr<Execution>& execution, absl::Time now);
  // It waits for more input.
  void AwaitInput(Execution& execution, absl::Time now);
  // It waits for its operator to be compiled, or for the server to copy its input.
  void AwaitOperator(Execution& execution, absl::Time now);
  // It waits for the device. `work_bytes` is its memory on the device: inputs, outputs and scratch;
  // `run_bytes` what it reads and writes there, weighted by the amount of computation, if known.
  void AwaitDevice(Execution& execution, uint64_t work_bytes, absl::Time now,
                   uint64_t run_bytes = 0);
  void Remove(Execution& execution);

  enum class Stall {
    kNoInput,    // it has waited too long for input
    kSlowInput,  // it receives input, but its upload has taken for long
  };
  struct Stalled {
    Stall why = Stall::kNoInput;
    std::vector<std::shared_ptr<Execution>> executions;
  };
  // The executions that should give up their memory, as far as `may_end` accepts them.
  Stalled FindStalled(absl::Time now,
                      const std::function<bool(const Execution&, Stall)>& may_end) const;

  // Returns the next execution for the device, removes it from its queue, and counts it as running.
  // Null if the device has enough work.
  std::shared_ptr<Execution> NextForDevice();
  // It shares the run of one that NextForDevice has returned: if it waits for the device, it is
  // removed from its queue, and counts as running.
  void TakeAlong(Execution& execution);
  // The device has finished the run of an execution. No effect if it does not count as running.
  void RunEnded(Execution& execution);

 private:
  using Queue = std::list<std::shared_ptr<Execution>>;
  // What the device has of one caller.
  struct Use {
    uint32_t small = 0;
    uint64_t small_bytes = 0;
    uint64_t large_bytes = 0;  // including huge ones
    absl::Time last;
  };

  static QueuePlace& PlaceOf(Execution& execution);
  static const QueuePlace& PlaceOf(const Execution& execution);
  void MoveTo(Queue& queue, Execution& execution, absl::Time now);
  bool MaySendSmall(const CallerAccount* caller, const Execution& execution) const;
  bool MaySendLarge(const CallerAccount* caller, const Execution& execution) const;
  bool HasRoomForLarge(const Execution& execution) const;
  Use UseOf(const CallerAccount* caller) const;
  void CountRunning(Execution& execution);
  void ForgetUses();

  Queue silent_;     // no input yet; oldest first
  Queue uploading_;  // partial input; the longest wait for more first
  Queue preparing_;  // the input is there; it is being copied, or the operator is being compiled
  ReadyQueue small_;
  ReadyQueue large_;
  uint32_t running_small_ = 0;
  uint64_t running_large_bytes_ = 0;  // without huge ones
  uint32_t running_huge_ = 0;
  std::unordered_map<const CallerAccount*, Use> uses_;
  absl::Time now_ = absl::InfinitePast();  // the latest time that was passed
  absl::Time next_forgetting_ = absl::InfinitePast();
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_EXECUTION_QUEUES_H_
