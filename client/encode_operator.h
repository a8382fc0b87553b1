// Converts the engine's descriptors to protos, using the names of the operator's schema.
#ifndef OPMILL_CLIENT_ENCODE_OPERATOR_H_
#define OPMILL_CLIENT_ENCODE_OPERATOR_H_

#include "kernels/descriptor/operator_desc.h"
#include "opmill/v1/operator.pb.h"
#include "opmill/v1/tensor.pb.h"

namespace opmill {

v1::OperatorDesc EncodeOperator(const OperatorDesc& desc);
// The reverse conversion, for a tensor.
TensorDesc TensorDescOf(const v1::TensorDesc& desc);

}  // namespace opmill

#endif  // OPMILL_CLIENT_ENCODE_OPERATOR_H_
