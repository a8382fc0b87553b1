// The descriptor of cumulative_summation in typed form.
#ifndef OPMILL_KERNELS_OPERATORS_CUMULATIVE_SUMMATION_CUMULATIVE_SUMMATION_DESC_H_
#define OPMILL_KERNELS_OPERATORS_CUMULATIVE_SUMMATION_CUMULATIVE_SUMMATION_DESC_H_

#include <cstdint>
#include <optional>

#include "kernels/descriptor/operator_desc.h"

namespace opmill {

extern const OperatorSchema kCumulativeSummationSchema;

// DML_OPERATOR_CUMULATIVE_SUMMATION
struct CumulativeSummationDesc {
  TensorDesc input;
  std::optional<TensorDesc> output;  // default: packed
  uint32_t axis = 0;
  AxisDirection axis_direction = AxisDirection::kIncreasing;
  bool has_exclusive_sum = false;  // excludes the element itself from its sum

  operator OperatorDesc() const;  // NOLINT(google-explicit-constructor): equivalent forms
  static CumulativeSummationDesc From(const OperatorDesc& desc);
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_CUMULATIVE_SUMMATION_CUMULATIVE_SUMMATION_DESC_H_
