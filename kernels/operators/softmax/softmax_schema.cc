#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/softmax/softmax_desc.h"

namespace opmill {

// DirectML's rows are those of ACTIVATION_HARDMAX1 and ACTIVATION_HARDMAX.
constinit const OperatorSchema kSoftmaxSchema = {.name = "softmax",
                                                 .summary = "e^x divided by its sum over the axes",
                                                 .inputs = kHardmaxInputs,
                                                 .outputs = kHardmaxOutputs,
                                                 .attributes = kHardmaxAttributes,
                                                 .family = OperatorFamily::kSoftmax,
                                                 .support = kHardmaxSupport,
                                                 .infer = &InferHardmax};
constinit const OperatorSchema kLogSoftmaxSchema = {.name = "log_softmax",
                                                    .summary = "the logarithm of softmax",
                                                    .inputs = kHardmaxInputs,
                                                    .outputs = kHardmaxOutputs,
                                                    .attributes = kHardmaxAttributes,
                                                    .family = OperatorFamily::kSoftmax,
                                                    .support = kHardmaxSupport,
                                                    .infer = &InferHardmax};

std::vector<const OperatorSchema*> SoftmaxOperators() {
  return {&kSoftmaxSchema, &kLogSoftmaxSchema};
}

}  // namespace opmill
