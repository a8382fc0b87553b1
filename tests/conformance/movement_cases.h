// Random cases of the operators that move elements.
#ifndef OPMILL_TESTS_CONFORMANCE_MOVEMENT_CASES_H_
#define OPMILL_TESTS_CONFORMANCE_MOVEMENT_CASES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/plan/plan.h"
#include "tests/conformance/conformance_case.h"

namespace opmill {

// A case of that operator: sizes, strides of inputs and output, attributes and plan options vary.
ConformanceCase RandomMovementCase(const OperatorSchema& schema, DataType type, uint64_t seed,
                                   const PlanOptions& own);

// Positions, most of them in range, or lengths: the bytes of an index tensor of the operator.
std::vector<std::byte> MakeIndices(const OperatorDesc& validated, size_t input, uint64_t seed);

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_MOVEMENT_CASES_H_
