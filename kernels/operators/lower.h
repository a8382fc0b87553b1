// Replaces operators that devices have no kernels for by programs of those that they have.
#ifndef OPMILL_KERNELS_OPERATORS_LOWER_H_
#define OPMILL_KERNELS_OPERATORS_LOWER_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/program/program.h"

namespace opmill {

// Whether GPUs have no kernels for the operator: an OPMILL_LOWERED_FAMILY.
bool IsLowered(const OperatorDesc& desc);

// The validated program without such operators, except those that `keeps` accepts. Its inputs and
// outputs are the same; each operator's own intermediates follow. `origins` gets, for each node of
// the result, the node of `program`.
Program Lower(
    Program program,
    absl::FunctionRef<bool(const OperatorDesc&)> keeps = [](const OperatorDesc&) { return false; },
    std::vector<uint32_t>* origins = nullptr);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_LOWER_H_
