#ifndef OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_RANKS_H_
#define OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_RANKS_H_

#include "kernels/dims/iteration_space.h"
#include "kernels/operators/top_k/top_k_desc.h"

namespace opmill {

// The results of a sequence, in both outputs.
inline SpaceDim RankDim(const TopKDesc& desc) {
  return {desc.k,
          {0, EffectiveStrides(*desc.output_values)[desc.axis],
           EffectiveStrides(*desc.output_indices)[desc.axis]}};
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_RANKS_H_
