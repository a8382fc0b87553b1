// Descriptors as messages, for tests that call a server.
#ifndef OPMILL_TESTS_SUPPORT_ENCODE_OPERATOR_H_
#define OPMILL_TESTS_SUPPORT_ENCODE_OPERATOR_H_

#include "kernels/descriptor/operator_desc.h"
#include "opmill/v1/operator.pb.h"

namespace opmill {

v1::OperatorDesc EncodeOperator(const OperatorDesc& desc);

}  // namespace opmill

#endif  // OPMILL_TESTS_SUPPORT_ENCODE_OPERATOR_H_
