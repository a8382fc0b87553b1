// Exact results of gemm and convolution.
#ifndef OPMILL_KERNELS_OPERATORS_MATRIX_MATRIX_REFERENCE_H_
#define OPMILL_KERNELS_OPERATORS_MATRIX_MATRIX_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>

#include "absl/types/span.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/reference/element_access.h"

namespace opmill {

// A result before it is rounded, with the values that determine its error bound.
struct ExactProduct {
  double value = 0;
  double sum_of_magnitudes = 0;  // of all products and of what is added
  uint64_t count = 0;            // of the products
};

// Calls visit(coordinate, result) for every element of the output. `validated` is a gemm or a
// convolution.
void ForEachExactProduct(const OperatorDesc& validated,
                         absl::Span<const absl::Span<const std::byte>> inputs,
                         const std::stop_token& abandoned,
                         const std::function<void(const Coordinate&, const ExactProduct&)>& visit);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MATRIX_MATRIX_REFERENCE_H_
