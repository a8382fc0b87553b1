// search as a program of other operators.
#ifndef OPMILL_KERNELS_OPERATORS_SEARCH_SEARCH_LOWER_H_
#define OPMILL_KERNELS_OPERATORS_SEARCH_SEARCH_LOWER_H_

#include <cstdint>

#include "kernels/descriptor/operator_desc.h"
#include "kernels/program/program.h"

namespace opmill {

// A chunk's scores, and its vectors in FLOAT32 if they have another type, each have at most so many
// elements, unless that made too many chunks.
Program LowerSearchInChunks(const OperatorDesc& validated, uint64_t chunk_elements);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_SEARCH_SEARCH_LOWER_H_
