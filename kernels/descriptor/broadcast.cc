#include "kernels/descriptor/broadcast.h"

#include <cstddef>
#include <utility>

namespace opmill {

void BroadcastTo(const std::vector<uint32_t>& sizes, TensorDesc& tensor) {
  if (tensor.sizes == sizes) return;
  const std::vector<uint32_t> strides = EffectiveStrides(tensor);
  const size_t added = sizes.size() - strides.size();
  std::vector<uint32_t> broadcast(sizes.size(), 0);
  for (size_t d = 0; d < strides.size(); ++d) {
    if (tensor.sizes[d] == sizes[added + d]) broadcast[added + d] = strides[d];
  }
  tensor.sizes = sizes;
  tensor.strides = std::move(broadcast);
}

}  // namespace opmill
