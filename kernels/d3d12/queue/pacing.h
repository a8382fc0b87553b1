// Limits how much of a plan goes into one submission: no more than the device completes in a
// fraction of a second, so that other runs get their turn and drivers do not treat long work as a
// hang.
#ifndef OPMILL_KERNELS_D3D12_QUEUE_PACING_H_
#define OPMILL_KERNELS_D3D12_QUEUE_PACING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/plan/plan.h"
#include "kernels/program/program.h"

namespace opmill {

// A position in a plan: before group `group` of the dispatch, and if it is the first position of a
// pass, before the pass's fills.
struct PlanCursor {
  size_t pass = 0;
  size_t dispatch = 0;
  uint32_t group = 0;
  friend bool operator==(const PlanCursor&, const PlanCursor&) = default;
};

// The number of groups over both dimensions.
inline uint32_t GroupsOf(const Dispatch& dispatch) {
  return dispatch.groups[0] * dispatch.groups[1];  // 65535 * 65535 at most
}

// Estimates how long a group of each kernel takes. Before the first measurement, it assumes that
// the device processes 64 MiB of the program's data per second, with an upper limit for groups of
// little work. A kernel's share is that of its dispatches or that of its groups, the larger one:
// some kernels have few groups that take long beside another's many. Thread-safe.
class Pace {
 public:
  Pace(const Program& program, const OperatorPlan& plan);

  double GroupSeconds(uint32_t kernel) const {
    return seconds_[kernel].load(std::memory_order_relaxed);
  }
  // How long the range [begin, end) is expected to take.
  double Seconds(const OperatorPlan& plan, PlanCursor begin, PlanCursor end) const;
  // True if all kernels between `begin` and `end` have been measured.
  bool IsMeasured(const OperatorPlan& plan, PlanCursor begin, PlanCursor end) const;
  // A submission of the range [begin, end) took `factor` times as long as Seconds now says. A
  // longer time takes effect at once, a shorter one gradually. Must not be called concurrently.
  void Learn(const OperatorPlan& plan, PlanCursor begin, PlanCursor end, double factor);

 private:
  std::vector<double> most_seconds_;  // upper limits for groups of little work
  std::vector<std::atomic<double>> seconds_;
  std::vector<std::atomic<bool>> measured_;
};

// The remaining capacity of a submission.
struct SubmissionRoom {
  uint64_t dispatches = 0;
  uint64_t more_reads = ~uint64_t{0};  // dispatches with more than the first reads
  double seconds = 0;
};

// Returns the furthest position after `begin` that fits into `room`, but at least one group
// further, and reduces `room` accordingly.
PlanCursor Advance(const OperatorPlan& plan, const Pace& pace, PlanCursor begin,
                   SubmissionRoom& room);

// Calls function(at, past) for each dispatch in [begin, end): its groups from at.group to before
// `past`.
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
