#ifndef OPMILL_KERNELS_OPERATORS_ELEMENTWISE_FUSE_CHAINS_H_
#define OPMILL_KERNELS_OPERATORS_ELEMENTWISE_FUSE_CHAINS_H_

#include "kernels/program/program.h"

namespace opmill {

// Element-wise operators whose result only one other reads, element by element, become one chain
// with it. The bits of the outputs stay the same. `validated` has passed Validate, to which the
// result is not given again: chains are no operators.
Program FuseChains(Program validated);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_ELEMENTWISE_FUSE_CHAINS_H_
