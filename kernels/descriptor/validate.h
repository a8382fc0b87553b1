// The law: one sentence when a descriptor breaks it, a complete descriptor when it does not.
#ifndef OPMILL_KERNELS_DESCRIPTOR_VALIDATE_H_
#define OPMILL_KERNELS_DESCRIPTOR_VALIDATE_H_

#include "absl/status/statusor.h"
#include "kernels/descriptor/feature_levels.h"
#include "kernels/descriptor/operator_desc.h"

namespace opmill {

// Returns the descriptor with its left-out outputs inferred (packed; indices UINT32).
//   InvalidArgument     the descriptor is unlawful at every level; FieldOf(status) names the field
//   FailedPrecondition  lawful, but not at `level`; the sentence names the level that allows it
absl::StatusOr<OperatorDesc> Validate(OperatorDesc desc, FeatureLevel level = kNewestFeatureLevel);

}  // namespace opmill

#endif  // OPMILL_KERNELS_DESCRIPTOR_VALIDATE_H_
