// Makes plans for tests.
#ifndef OPMILL_TESTS_KERNELS_PLANS_H_
#define OPMILL_TESTS_KERNELS_PLANS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/descriptor/tensor.h"
#include "kernels/plan/plan.h"

namespace opmill {

TensorDesc Tensor(std::vector<uint32_t> sizes, DataType type = DataType::kFloat32,
                  std::vector<uint32_t> strides = {});

// Plans a descriptor; fails the test if it is invalid.
absl::StatusOr<OperatorPlan> TryPlan(const OperatorDesc& desc, const PlanOptions& options = {});
// The same; also fails the test if there is no plan.
OperatorPlan Plan(const OperatorDesc& desc, const PlanOptions& options = {});

uint32_t Macro(const KernelPermutation& kernel, const std::string& name);
// The entry points of all dispatches, in order.
std::vector<std::string> Entries(const OperatorPlan& plan);

// Options of a small software device: 64 groups of 8 lanes.
PlanOptions Software();

// Those of a large GPU: 1024 groups of 256 lanes.
PlanOptions Hardware();

}  // namespace opmill

#endif  // OPMILL_TESTS_KERNELS_PLANS_H_
