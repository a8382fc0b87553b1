// The descriptor of top_k in typed form.
#ifndef OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_DESC_H_
#define OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_DESC_H_

#include <cstdint>
#include <optional>

#include "kernels/descriptor/operator_desc.h"

namespace opmill {

extern const OperatorSchema kTopKSchema;

// DML_OPERATOR_TOP_K1, and DML_OPERATOR_TOP_K with kDecreasing
struct TopKDesc {
  TensorDesc input;
  std::optional<TensorDesc> output_values;   // default: packed
  std::optional<TensorDesc> output_indices;  // default: packed UINT32
  uint32_t axis = 0;
  uint32_t k = 0;
  AxisDirection axis_direction = AxisDirection::kDecreasing;

  operator OperatorDesc() const;  // NOLINT(google-explicit-constructor): equivalent forms
  static TopKDesc From(const OperatorDesc& desc);
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_DESC_H_
