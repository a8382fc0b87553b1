// The descriptor of element_wise_add in typed form.
#ifndef OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_DESC_H_
#define OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_DESC_H_

#include <optional>

#include "kernels/descriptor/operator_desc.h"

namespace opmill {

// DML_OPERATOR_ELEMENT_WISE_ADD
struct ElementWiseAddDesc {
  TensorDesc a;
  TensorDesc b;
  std::optional<TensorDesc> output;  // default: packed

  operator OperatorDesc() const;  // NOLINT(google-explicit-constructor): equivalent forms
  static ElementWiseAddDesc From(const OperatorDesc& desc);
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_DESC_H_
