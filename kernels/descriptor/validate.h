// Validates a descriptor and fills in default outputs.
#ifndef OPMILL_KERNELS_DESCRIPTOR_VALIDATE_H_
#define OPMILL_KERNELS_DESCRIPTOR_VALIDATE_H_

#include "absl/status/statusor.h"
#include "kernels/descriptor/feature_levels.h"
#include "kernels/descriptor/operator_desc.h"

namespace opmill {

// Returns the descriptor with omitted outputs inferred (packed; indices UINT32). Errors:
//   InvalidArgument     invalid at every level; FieldOf(status) names the field
//   FailedPrecondition  valid, but not at `level`; the message names a level that allows it
absl::StatusOr<OperatorDesc> Validate(OperatorDesc desc, FeatureLevel level = kNewestFeatureLevel);

}  // namespace opmill

#endif  // OPMILL_KERNELS_DESCRIPTOR_VALIDATE_H_
