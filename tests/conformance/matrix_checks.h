// Tensors of the tests of gemm and convolution, and the check of their results.
#ifndef OPMILL_TESTS_CONFORMANCE_MATRIX_CHECKS_H_
#define OPMILL_TESTS_CONFORMANCE_MATRIX_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/descriptor/operator_desc.h"
#include "kernels/operators/matrix/matrix_reference.h"
#include "tests/conformance/values.h"

namespace opmill {

using Bytes = std::vector<std::byte>;

inline TensorDesc Tensor(std::vector<uint32_t> sizes, DataType type = DataType::kFloat32) {
  return {type, std::move(sizes), {}};
}
// Padded, and every second element.
void Spread(TensorDesc& tensor);

std::vector<Bytes> InputsOf(const OperatorDesc& desc, ValuePattern values);

double ElementAt(const TensorDesc& desc, const Bytes& bytes, const Coordinate& coordinate);

// The sum of magnitudes that bounds the error of a result.
using MagnitudeOf = std::function<double(const Coordinate&, const ExactProduct&)>;

// Returns the first mistake in one of `outputs`, which all are results of `desc`, or "". `is_tree`:
// sums are those of docs/operators.md for the processor; other devices may add one product after
// the other.
std::string FindProductMistake(const OperatorDesc& desc, const std::vector<Bytes>& inputs,
                               const std::vector<Bytes>& outputs, bool is_tree,
                               const MagnitudeOf& magnitude_of = nullptr);

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_MATRIX_CHECKS_H_
