// The descriptor of hardmax in typed form.
#ifndef OPMILL_KERNELS_OPERATORS_HARDMAX_HARDMAX_DESC_H_
#define OPMILL_KERNELS_OPERATORS_HARDMAX_HARDMAX_DESC_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/descriptor/operator_desc.h"

namespace opmill {

extern const OperatorSchema kHardmaxSchema;

// DML_OPERATOR_ACTIVATION_HARDMAX1; with only the last axis also ACTIVATION_HARDMAX.
struct HardmaxDesc {
  TensorDesc input;
  std::optional<TensorDesc> output;  // default: packed
  std::vector<uint32_t> axes;

  operator OperatorDesc() const;  // NOLINT(google-explicit-constructor): equivalent forms
  static HardmaxDesc From(const OperatorDesc& desc);
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_HARDMAX_HARDMAX_DESC_H_
