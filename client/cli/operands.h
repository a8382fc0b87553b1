// What one execution takes as its inputs.
#ifndef OPMILL_CLIENT_CLI_OPERANDS_H_
#define OPMILL_CLIENT_CLI_OPERANDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {

// Gives the inputs of an operator that works on each element alone one shape, as NumPy broadcasts:
// from the last dimension on, sizes that are 1 or missing become those of the others, with a stride
// of 0. Other operators' inputs stay as they are. InvalidArgument calls the inputs `names`: their
// types differ, or two sizes differ and neither is 1.
absl::Status Broadcast(const OperatorSchema& schema, absl::Span<const std::string> names,
                       std::vector<TensorDesc>& inputs);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_OPERANDS_H_
