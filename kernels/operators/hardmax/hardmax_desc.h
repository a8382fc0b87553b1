// The descriptor of hardmax in typed form.
#ifndef OPMILL_KERNELS_OPERATORS_HARDMAX_HARDMAX_DESC_H_
#define OPMILL_KERNELS_OPERATORS_HARDMAX_HARDMAX_DESC_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/descriptor/operator_desc.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {

extern const OperatorSchema kHardmaxSchema;

// softmax and log_softmax have the same tensors, attributes and rows.
extern const TensorSchema kHardmaxInputs[1];
extern const TensorSchema kHardmaxOutputs[1];
extern const AttributeSchema kHardmaxAttributes[1];
extern const SupportTable kHardmaxSupport[2];
absl::Status InferHardmax(const OperatorDesc& desc, std::vector<InferredOutput>& outputs);

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
