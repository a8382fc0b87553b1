// Decides whether new work is accepted, from the limits and the current load.
#ifndef OPMILL_SERVER_EXECUTION_ADMISSION_H_
#define OPMILL_SERVER_EXECUTION_ADMISSION_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/config/options.h"
#include "server/execution/tensor_buffers.h"

namespace opmill {

// The error for new work while the server drains.
absl::Status Draining();

// Refusals are ResourceExhausted, with a retry delay if there may be room later; Unavailable while
// draining. Immutable.
class Admission {
 public:
  // The work in progress.
  struct Load {
    bool draining = false;
    bool short_of_memory = false;
    uint64_t queued = 0;  // executions that wait for the device
    // How many of these there may be, if not max_queued: the caller's SharedLimit::LimitFor.
    std::optional<uint64_t> max_queued;
    uint64_t compilations = 0;  // for which CompileOperator calls wait
  };

  explicit Admission(const Limits& limits) : limits_(limits) {}

  // Whether an execution of these sizes may begin that has `time_left` until its deadline. Does not
  // check that there is room for it now: MemoryBudget and SharedLimit do.
  absl::Status CheckExecution(const BufferSizes& sizes, absl::Duration time_left,
                              const Load& load) const;
  // Whether the limits on each caller allow an execution that takes `wanted`, in addition to what
  // the caller has in progress. Does not check the rate.
  absl::Status CheckCaller(const BufferSizes& wanted, uint64_t executions, uint64_t bytes) const;
  // The errors for an execution or stream without a place: the caller may not go beyond `up_to`,
  // the limit or less.
  absl::Status NoPlaceForExecution(uint64_t up_to) const;
  absl::Status NoPlaceForStream(uint64_t up_to) const;
  // The error for a caller that begins executions too fast, and may begin the next one after
  // `wait`.
  absl::Status TooFast(absl::Duration wait) const;

  // Whether one more operator may be compiled for a CompileOperator call. `sizes`: of its
  // executions.
  absl::Status CheckCompilation(const BufferSizes& sizes, const Load& load) const;

  // The error of an execution for which the device has no memory. Without other executions, which
  // may release some, a retry makes no sense.
  static absl::Status OutOfMemory(absl::Status status, uint64_t other_executions);
  // The error of an execution that gave up its room to another one.
  enum class Displacement { kNoInput, kSlowInput, kUnreadResults };
  static absl::Status Displaced(Displacement why);

 private:
  absl::Status CheckSizes(const BufferSizes& sizes) const;
  absl::Status CheckMemory(const Load& load) const;

  const Limits limits_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_ADMISSION_H_
