// Merges adjacent dimensions that can be iterated as one.
#ifndef OPMILL_KERNELS_DIMS_COLLAPSE_H_
#define OPMILL_KERNELS_DIMS_COLLAPSE_H_

#include <cstdint>
#include <vector>

namespace opmill {

// Drops dimensions of size 1. walks_as_one(outer, inner) returns whether, in every tensor, one step
// of `outer` is equal to one step past the end of `inner`.
template <typename Dim, typename WalksAsOne>
std::vector<Dim> Collapse(const std::vector<Dim>& dims, const WalksAsOne& walks_as_one) {
  std::vector<Dim> result;
  for (const Dim& dim : dims) {
    if (dim.size == 1) continue;
    if (!result.empty() && walks_as_one(result.back(), dim)) {
      const uint64_t size = result.back().size * dim.size;
      result.back() = dim;
      result.back().size = size;
    } else {
      result.push_back(dim);
    }
  }
  return result;
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_DIMS_COLLAPSE_H_
