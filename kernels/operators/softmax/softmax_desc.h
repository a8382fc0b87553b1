// The schemas of softmax and log_softmax.
#ifndef OPMILL_KERNELS_OPERATORS_SOFTMAX_SOFTMAX_DESC_H_
#define OPMILL_KERNELS_OPERATORS_SOFTMAX_SOFTMAX_DESC_H_

#include "kernels/descriptor/operator_schema.h"

namespace opmill {

extern const OperatorSchema kSoftmaxSchema;
extern const OperatorSchema kLogSoftmaxSchema;

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_SOFTMAX_SOFTMAX_DESC_H_
