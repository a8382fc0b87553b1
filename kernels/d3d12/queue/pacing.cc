#include "kernels/d3d12/queue/pacing.h"

#include <algorithm>
#include <limits>

#include "kernels/descriptor/tensor.h"

namespace opmill {
namespace {

// The slowest known operator, top_k of k=8192 on two cores, processes 110 MB per second.
constexpr double kUnmeasuredBytesPerSecond = 64 << 20;

// Work that takes at most this long, even at the assumed speed, cannot make a submission too long.
// It is exempt from learning longer times, which interruptions of the host would distort.
constexpr double kLittleSeconds = 0.005;

constexpr double kZeroBytesPerSecond = 1e9;  // for fills; lavapipe reaches 25e9 on an idle machine

// Larger dispatches are split after complete rows of this many groups. The last row of the grid may
// extend beyond the work, which is allowed only at the end of a dispatch.
constexpr uint32_t kGroupColumns = 32768;
constexpr uint32_t kMaxGroupColumns = 65535;

// The bytes that the program reads, writes and keeps in scratch. A broadcast input has few bytes
// but much work, so its elements count. Intermediates count although they share scratch.
double WorkBytes(const Program& program, const OperatorPlan& plan) {
  uint64_t bytes = plan.scratch_bytes;
  for (const uint64_t input_bytes : plan.input_bytes) bytes += input_bytes;
  for (const uint64_t output_bytes : plan.output_bytes) bytes += output_bytes;
  for (const uint64_t size : RequiredBytes(program, ValueKind::kIntermediate)) bytes += size;
  for (const ProgramNode& node : program.nodes) {
    for (const TensorDesc& input : node.desc.inputs) {
      const uint64_t work = ElementCount(input) * ElementBytes(input.data_type);
      bytes += work - std::min(work, RequiredBytes(input));
    }
  }
  return static_cast<double>(bytes);
}

double FillSeconds(const Pass& pass) {
  double seconds = 0;
  for (const Fill& fill : pass.fills) {
    seconds += static_cast<double>(fill.size_bytes) / kZeroBytesPerSecond;
  }
  return seconds;
}

uint32_t GroupsFor(double seconds, double group_seconds, uint32_t most) {
  if (seconds >= group_seconds * most) return most;
  const uint32_t groups = static_cast<uint32_t>(std::max(seconds / group_seconds, 0.0));
  return groups <= kMaxGroupColumns ? groups : groups / kGroupColumns * kGroupColumns;
}

}  // namespace

Pace::Pace(const Program& program, const OperatorPlan& plan)
    : most_seconds_(plan.kernels.size()),
      seconds_(plan.kernels.size()),
      measured_(plan.kernels.size()) {
  struct Count {
    double dispatches = 0;
    double groups = 0;
  };
  Count all;
  std::vector<Count> of_kernel(plan.kernels.size());
  for (const Pass& pass : plan.passes) {
    for (const Dispatch& dispatch : pass.dispatches) {
      for (Count* count : {&all, &of_kernel[dispatch.kernel]}) {
        count->dispatches += 1;
        count->groups += GroupsOf(dispatch);
      }
    }
  }
  const double seconds = WorkBytes(program, plan) / kUnmeasuredBytesPerSecond;
  for (size_t k = 0; k < seconds_.size(); ++k) {
    const Count& own = of_kernel[k];
    const double share = std::max(own.dispatches / std::max(all.dispatches, 1.0),
                                  own.groups / std::max(all.groups, 1.0));
    const double group_seconds = seconds * share / std::max(own.groups, 1.0);
    most_seconds_[k] =
        seconds <= kLittleSeconds ? group_seconds : std::numeric_limits<double>::infinity();
    seconds_[k] = group_seconds;
  }
}

double Pace::Seconds(const OperatorPlan& plan, PlanCursor begin, PlanCursor end) const {
  double seconds = 0;
  const bool has_begun = begin.dispatch > 0 || begin.group > 0;
  const bool ends_within = end.dispatch > 0 || end.group > 0;
  for (size_t pass = begin.pass + has_begun; pass < end.pass + ends_within; ++pass) {
    seconds += FillSeconds(plan.passes[pass]);
  }
  ForEachDispatch(plan, begin, end, [&](const PlanCursor& at, uint32_t past) {
    const uint32_t kernel = plan.passes[at.pass].dispatches[at.dispatch].kernel;
    seconds += GroupSeconds(kernel) * (past - at.group);
  });
  return seconds;
}

bool Pace::IsMeasured(const OperatorPlan& plan, PlanCursor begin, PlanCursor end) const {
  bool is_measured = true;
  ForEachDispatch(plan, begin, end, [&](const PlanCursor& at, uint32_t) {
    is_measured &= measured_[plan.passes[at.pass].dispatches[at.dispatch].kernel];
  });
  return is_measured;
}

void Pace::Learn(const OperatorPlan& plan, PlanCursor begin, PlanCursor end, double factor) {
  std::vector<bool> learned(seconds_.size());
  ForEachDispatch(plan, begin, end, [&](const PlanCursor& at, uint32_t) {
    const uint32_t kernel = plan.passes[at.pass].dispatches[at.dispatch].kernel;
    if (learned[kernel]) return;
    learned[kernel] = true;
    const double old = GroupSeconds(kernel);
    double seconds = old * factor;
    if (measured_[kernel]) seconds = std::max(seconds, 0.75 * old + 0.25 * seconds);
    measured_[kernel] = true;
    seconds_[kernel].store(std::min(seconds, most_seconds_[kernel]), std::memory_order_relaxed);
  });
}

PlanCursor Advance(const OperatorPlan& plan, const Pace& pace, PlanCursor begin,
                   SubmissionRoom& room) {
  PlanCursor cursor = begin;
  for (; cursor.pass < plan.passes.size(); cursor = {cursor.pass + 1, 0, 0}) {
    const Pass& pass = plan.passes[cursor.pass];
    if (cursor.dispatch == 0 && cursor.group == 0) room.seconds -= FillSeconds(pass);
    for (; cursor.dispatch < pass.dispatches.size(); ++cursor.dispatch, cursor.group = 0) {
      const Dispatch& dispatch = pass.dispatches[cursor.dispatch];
      const bool has_more_reads = dispatch.has_more_reads();
      if (room.dispatches == 0 || (has_more_reads && room.more_reads == 0)) return cursor;
      const double group_seconds = pace.GroupSeconds(dispatch.kernel);
      const uint32_t rest = GroupsOf(dispatch) - cursor.group;
      uint32_t groups = GroupsFor(room.seconds, group_seconds, rest);
      if (groups == 0) {
        if (cursor != begin) return cursor;
        groups = 1;
      }
      --room.dispatches;
      if (has_more_reads) --room.more_reads;
      room.seconds -= group_seconds * groups;
      if (groups < rest) {
        cursor.group += groups;
        return cursor;
      }
    }
  }
  return cursor;
}

}  // namespace opmill
