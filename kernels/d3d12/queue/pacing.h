// How much of a plan goes into one submission: no more than the device does in a fraction of a
// second, so that others get their turn, and no driver takes long work for a hang.
#ifndef OPMILL_KERNELS_D3D12_QUEUE_PACING_H_
#define OPMILL_KERNELS_D3D12_QUEUE_PACING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/descriptor/operator_desc.h"
#include "kernels/plan/plan.h"

namespace opmill {

// A place in a plan's passes: before that group of that dispatch, and before the pass's fills when
// it is the first.
struct PlanCursor {
  size_t pass = 0;
  size_t dispatch = 0;
  uint32_t group = 0;
  friend bool operator==(const PlanCursor&, const PlanCursor&) = default;
};

// Over both dimensions.
inline uint32_t GroupsOf(const Dispatch& dispatch) {
  return dispatch.groups[0] * dispatch.groups[1];  // 65535 * 65535 at most
}

// How long a group of each kernel takes. Where nothing has been measured yet, as long as if all
// that the operator touches went through the device at 64 MiB a second; of little work never more.
// Safe to use from many threads.
class Pace {
 public:
  Pace(const OperatorDesc& desc, const OperatorPlan& plan);

  double GroupSeconds(uint32_t kernel) const {
    return seconds_[kernel].load(std::memory_order_relaxed);
  }
  // Have all kernels of what lies between been measured?
  bool IsMeasured(const OperatorPlan& plan, PlanCursor begin, PlanCursor end) const;
  // A submission of what lies between took `factor` times as long as expected. What takes longer
  // than thought is believed at once, what takes less by and by. One thread at a time.
  void Learn(const OperatorPlan& plan, PlanCursor begin, PlanCursor end, double factor);

 private:
  double most_seconds_ = 0;  // for a group of little work, else no limit
  std::vector<std::atomic<double>> seconds_;
  std::vector<std::atomic<bool>> measured_;
};

// What a submission has room for.
struct SubmissionRoom {
  uint64_t dispatches = 0;
  double seconds = 0;
};

// The furthest place from `begin` with no more between than there is room for, but one group at
// least; takes from `room` what lies between.
PlanCursor Advance(const OperatorPlan& plan, const Pace& pace, PlanCursor begin,
                   SubmissionRoom& room);

// Calls back for each dispatch from `begin` to `end` with its groups from the one to before the
// other.
template <typename Function>
void ForEachDispatch(const OperatorPlan& plan, PlanCursor begin, PlanCursor end,
                     const Function& function) {
  for (PlanCursor at = begin; at.pass < plan.passes.size() && at.pass <= end.pass;
       at = {at.pass + 1, 0, 0}) {
    const std::vector<Dispatch>& dispatches = plan.passes[at.pass].dispatches;
    const bool is_last_pass = at.pass == end.pass;
    for (; at.dispatch < dispatches.size(); ++at.dispatch, at.group = 0) {
      const bool is_cut = is_last_pass && at.dispatch == end.dispatch;
      const uint32_t past = is_cut ? end.group : GroupsOf(dispatches[at.dispatch]);
      if (past > at.group) function(at, past);
      if (is_cut) return;
    }
  }
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_QUEUE_PACING_H_
