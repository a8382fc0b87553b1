// Converts descriptors of the engine to messages of the contract, by the names of the schema.
#ifndef OPMILL_CLIENT_ENCODE_OPERATOR_H_
#define OPMILL_CLIENT_ENCODE_OPERATOR_H_

#include "kernels/descriptor/operator_desc.h"
#include "opmill/v1/operator.pb.h"
#include "opmill/v1/tensor.pb.h"

namespace opmill {

v1::OperatorDesc EncodeOperator(const OperatorDesc& desc);
// Converts a tensor's message to its descriptor.
TensorDesc TensorDescOf(const v1::TensorDesc& desc);

}  // namespace opmill

#endif  // OPMILL_CLIENT_ENCODE_OPERATOR_H_
