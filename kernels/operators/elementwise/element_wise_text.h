// The HLSL of a chain.
#ifndef OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_TEXT_H_
#define OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_TEXT_H_

#include <string>

#include "kernels/dims/elementwise_space.h"
#include "kernels/operators/elementwise/element_wise_chain.h"

namespace opmill {

// The function Compute of shaders/element_wise.hlsl, for quads of a row's elements or for single
// elements. Parameters are read from the constants, so that they do not change it.
std::string ChainText(const Chain& chain, const ElementwiseSpace& space, bool in_quads);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_TEXT_H_
