// Tensors that are read as larger ones.
#ifndef OPMILL_KERNELS_DESCRIPTOR_BROADCAST_H_
#define OPMILL_KERNELS_DESCRIPTOR_BROADCAST_H_

#include <cstdint>
#include <vector>

#include "kernels/descriptor/tensor.h"

namespace opmill {

// Gives a tensor these sizes, with strides of 0 where its own are 1 or missing. Its dimensions are
// the last ones; each of its sizes must be the new one or 1.
void BroadcastTo(const std::vector<uint32_t>& sizes, TensorDesc& tensor);

}  // namespace opmill

#endif  // OPMILL_KERNELS_DESCRIPTOR_BROADCAST_H_
