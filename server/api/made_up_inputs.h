// Inputs that no caller sends.
#ifndef OPMILL_SERVER_API_MADE_UP_INPUTS_H_
#define OPMILL_SERVER_API_MADE_UP_INPUTS_H_

#include <vector>

#include "kernels/descriptor/tensor.h"
#include "server/execution/input_source.h"

namespace opmill {

// The same elements every time: floats from 0 to 1, integers of 0 or 1, which are valid as indices
// and as booleans.
std::vector<InputSource> MadeUpInputs(const std::vector<TensorDesc>& inputs);

}  // namespace opmill

#endif  // OPMILL_SERVER_API_MADE_UP_INPUTS_H_
