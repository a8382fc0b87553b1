// Runs conformance cases on a device, several at a time, and checks the results.
#ifndef OPMILL_TESTS_CONFORMANCE_CONFORMANCE_RUNNER_H_
#define OPMILL_TESTS_CONFORMANCE_CONFORMANCE_RUNNER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/engine/device.h"
#include "kernels/plan/plan.h"
#include "tests/conformance/conformance_case.h"

namespace opmill {

// A mismatch is a GoogleTest failure that names the line to reproduce it. After kMostFailures,
// further cases are only counted as skipped.
class ConformanceRunner {
 public:
  static constexpr uint64_t kMostFailures = 10;

  // Compiles the plan of a descriptor for a device, or the descriptor for one that has no plans.
  using CompilePlan = absl::StatusOr<std::shared_ptr<const CompiledProgram>> (*)(
      Device& device, const OperatorDesc& desc, OperatorPlan plan);

  // Without `compile`, the device makes the plans, as usual.
  explicit ConformanceRunner(Device& device, CompilePlan compile = nullptr);

  // Starts the case; waits for the oldest one if enough are in progress.
  void Run(const ConformanceCase& c) { RunTogether({c}); }
  // The same for cases that differ only in their seeds, as runs of one compiled operator.
  void RunTogether(const std::vector<ConformanceCase>& cases);
  // Waits for all cases, and prints the count per operator, the kernels and the time.
  void Finish();

  // The cases of all finished runners of this process.
  static uint64_t cases_in_all() { return cases_in_all_; }
  // The number of dispatches if no runs shared any.
  uint64_t planned_dispatches() const { return planned_dispatches_; }

 private:
  // A case in progress. Float sums run twice, and must give the same bytes. So must an incremental
  // run, if the device has them.
  struct Started {
    ConformanceCase c;
    Inputs inputs;
    struct Attempt {
      Bindings bindings;
      bool is_incremental = false;
      std::unique_ptr<absl::Notification> done = std::make_unique<absl::Notification>();
      absl::StatusOr<RunStatistics> result = RunStatistics();
    };
    std::deque<Attempt> attempts;  // a deque, so that addresses are stable
  };

  absl::Status Bind(const OperatorPlan& plan, const CompiledProgram& compiled, Started& started);
  void Start(const std::shared_ptr<const CompiledProgram>& compiled, const OperatorPlan& plan,
             Started& started);
  absl::StatusOr<Bindings> Bind(const OperatorPlan& plan, const Inputs& inputs);
  absl::StatusOr<RunStatistics> RunIncrementally(
      const std::shared_ptr<const CompiledProgram>& compiled, const Bindings& bindings,
      absl::Span<const std::byte> input);
  void FinishOldest();
  std::string Verdict(Started& started);
  void Fail(const ConformanceCase& c, const std::string& mistake);

  static inline uint64_t cases_in_all_ = 0;

  Device& device_;
  const CompilePlan compile_;
  const DeviceCounters before_;
  const absl::Time began_;
  std::deque<std::unique_ptr<Started>> started_;
  std::map<std::string, uint64_t> counts_;
  uint64_t planned_dispatches_ = 0;
  uint64_t incremental_runs_ = 0;
  uint64_t failures_ = 0;
  uint64_t skipped_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_CONFORMANCE_RUNNER_H_
