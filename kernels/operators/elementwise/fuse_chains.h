#ifndef OPMILL_KERNELS_OPERATORS_ELEMENTWISE_FUSE_CHAINS_H_
#define OPMILL_KERNELS_OPERATORS_ELEMENTWISE_FUSE_CHAINS_H_

#include <cstdint>
#include <vector>

#include "kernels/program/program.h"

namespace opmill {

// Element-wise operators whose result only one other reads, element by element, become one chain
// with it. The bits of the outputs stay the same. `validated` has passed Validate, to which the
// result is not given again: chains are no operators. `parts` gets, for each node of the result,
// the nodes of `validated` that it computes.
Program FuseChains(Program validated, std::vector<std::vector<uint32_t>>* parts = nullptr);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_ELEMENTWISE_FUSE_CHAINS_H_
