// A device that only compiles, for tests of the operator cache.
#ifndef OPMILL_TESTS_KERNELS_COUNTING_DEVICE_H_
#define OPMILL_TESTS_KERNELS_COUNTING_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/engine/device.h"
#include "kernels/operators/program_plan.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/plan/plan_cost.h"

namespace opmill {

class CompiledNothing : public CompiledProgram {
 public:
  CompiledNothing(Program program, ProgramCost cost)
      : CompiledProgram(std::move(program), std::move(cost)) {}
};

// Only compiles: counts, and runs the test's callback before each compilation.
class CountingDevice : public Device {
 public:
  std::function<absl::Status(int number)> on_compile = [](int) { return absl::OkStatus(); };
  std::function<absl::Status(const std::stop_token&)> on_abandonable;
  std::function<void(ProgramCost&)> on_cost = [](ProgramCost&) {};
  std::atomic<int> compiled{0};

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::shared_ptr<const CompiledProgram>> Compile(
      const Program& program, const std::stop_token& abandoned) override {
    const absl::StatusOr<OperatorPlan> plan = MakePlan(program, {});
    if (!plan.ok()) return plan.status();
    const absl::Status status = on_compile(++compiled);
    if (!status.ok()) return status;
    if (on_abandonable) {
      const absl::Status abandonable = on_abandonable(abandoned);
      if (!abandonable.ok()) return abandonable;
    }
    ProgramCost cost = CostOf(*plan);
    on_cost(cost);
    return std::make_shared<const CompiledNothing>(program, std::move(cost));
  }
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(uint64_t, Residency) override {
    return absl::UnimplementedError("This device compiles only.");
  }
  void Run(std::shared_ptr<const CompiledProgram>, Bindings, std::stop_token,
           RunCallback done) override {
    done(absl::UnimplementedError("This device compiles only."));
  }
  DeviceCounters counters() const override { return {}; }

 private:
  DeviceInfo info_;
};

inline OperatorDesc SumOf(uint32_t length) {
  return ReduceDesc{.function = ReduceFunction::kSum,
                    .input = {DataType::kFloat32, {4, length}, {}},
                    .output = TensorDesc{DataType::kFloat32, {4, 1}, {}},
                    .axes = {1}};
}

}  // namespace opmill

#endif  // OPMILL_TESTS_KERNELS_COUNTING_DEVICE_H_
