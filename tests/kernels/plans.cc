#include "tests/kernels/plans.h"

#include <utility>

#include "gtest/gtest.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/operator_plan.h"

namespace opmill {

TensorDesc Tensor(std::vector<uint32_t> sizes, DataType type, std::vector<uint32_t> strides) {
  return {.data_type = type, .sizes = std::move(sizes), .strides = std::move(strides)};
}

absl::StatusOr<OperatorPlan> TryPlan(const OperatorDesc& desc, const PlanOptions& options) {
  const absl::StatusOr<OperatorDesc> validated = Validate(desc);
  EXPECT_TRUE(validated.ok()) << validated.status();
  return MakePlan(*validated, options);
}

OperatorPlan Plan(const OperatorDesc& desc, const PlanOptions& options) {
  absl::StatusOr<OperatorPlan> plan = TryPlan(desc, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

uint32_t Macro(const KernelPermutation& kernel, const std::string& name) {
  for (const ShaderMacro& macro : kernel.macros) {
    if (macro.name == name) return macro.value;
  }
  ADD_FAILURE() << kernel.entry << " has no macro " << name;
  return ~0u;
}

std::vector<std::string> Entries(const OperatorPlan& plan) {
  std::vector<std::string> entries;
  for (const Pass& pass : plan.passes) {
    for (const Dispatch& dispatch : pass.dispatches) {
      entries.push_back(plan.kernels[dispatch.kernel].entry);
    }
  }
  return entries;
}

PlanOptions Software() {
  PlanOptions options;
  options.threads = 8;
  options.parallel_groups = 64;
  return options;
}

PlanOptions Hardware() {
  PlanOptions options;
  options.threads = 256;
  options.parallel_groups = 1024;
  return options;
}

}  // namespace opmill
