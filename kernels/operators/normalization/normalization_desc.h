// The schemas of normalizations.
#ifndef OPMILL_KERNELS_OPERATORS_NORMALIZATION_NORMALIZATION_DESC_H_
#define OPMILL_KERNELS_OPERATORS_NORMALIZATION_NORMALIZATION_DESC_H_

#include "kernels/descriptor/operator_schema.h"

namespace opmill {

extern const OperatorSchema kMeanVarianceNormalizationSchema;
extern const OperatorSchema kBatchNormalizationSchema;
extern const OperatorSchema kLocalResponseNormalizationSchema;

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_NORMALIZATION_NORMALIZATION_DESC_H_
