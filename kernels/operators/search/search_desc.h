// The descriptor of search in typed form.
#ifndef OPMILL_KERNELS_OPERATORS_SEARCH_SEARCH_DESC_H_
#define OPMILL_KERNELS_OPERATORS_SEARCH_SEARCH_DESC_H_

#include <cstdint>
#include <optional>

#include "kernels/descriptor/operator_desc.h"

namespace opmill {

extern const OperatorSchema kSearchSchema;

enum class SearchMetric : uint32_t { kInnerProduct = 0, kL2 = 1, kCosine = 2 };

// For each of the queries, the k nearest of the vectors; docs/operators.md. DirectML has no such
// operator.
struct SearchDesc {
  TensorDesc queries;              // [Q, D]
  TensorDesc vectors;              // [N, D]
  std::optional<TensorDesc> mask;  // [1 or Q, N]: vectors with 0 are not found
  std::optional<TensorDesc> output_scores;
  std::optional<TensorDesc> output_indices;
  uint32_t k = 1;
  SearchMetric metric = SearchMetric::kInnerProduct;

  // The validated descriptor.
  static SearchDesc From(const OperatorDesc& validated);

  bool smallest_first() const { return metric == SearchMetric::kL2; }
};

// The index of a place that stays empty.
inline constexpr uint32_t kNotFound = 0xFFFF'FFFF;

// The score of a place that stays empty, as the bits of an element: an infinity, or the number of
// INT32 that is last.
uint64_t EmptyScore(const SearchDesc& desc);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_SEARCH_SEARCH_DESC_H_
