// A run as a plan and its progress: all that decisions about it need. Not thread-safe: once it is
// queued, only the queue uses it.
#ifndef OPMILL_KERNELS_D3D12_QUEUE_PLANNED_RUN_H_
#define OPMILL_KERNELS_D3D12_QUEUE_PLANNED_RUN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>

#include "absl/status/status.h"
#include "kernels/d3d12/queue/pacing.h"
#include "kernels/plan/plan.h"

namespace opmill {

struct PlannedRun {
  const OperatorPlan* plan = nullptr;  // lives as long as the run; null only in a run that failed
  const Pace* pace = nullptr;          // of that plan
  uint64_t input_bytes = 0;
  std::stop_token abandoned;
  bool goes_alone = false;  // its submissions have no other runs

  bool has_memory = false;  // nothing has to be allocated before the run can be submitted
  PlanCursor next;          // what has not been submitted yet
  absl::Status status;      // OK, or why the rest will not be

  bool is_under_way() const { return next != PlanCursor(); }
};

// From `begin` to `end` of the run's plan.
struct RunPart {
  std::shared_ptr<PlannedRun> run;
  PlanCursor begin;
  PlanCursor end;

  bool is_first() const { return begin == PlanCursor(); }
  bool is_last() const { return end.pass == run->plan->passes.size(); }
  bool is_whole() const { return is_first() && is_last(); }
  // The passes that it has, wholly or in part.
  size_t pass_count() const {
    const bool ends_between = end == PlanCursor{end.pass, 0, 0};
    return (ends_between ? end.pass : end.pass + 1) - begin.pass;
  }
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_QUEUE_PLANNED_RUN_H_
