// Broadcasts the inputs of an execution.
#ifndef OPMILL_CLIENT_CLI_BROADCAST_H_
#define OPMILL_CLIENT_CLI_BROADCAST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {

// Gives the inputs of an elementwise operator one shape, as NumPy broadcasts: from the last
// dimension on, sizes that are 1 or missing become those of the other inputs, with a stride of 0.
// Does nothing for other operators. Returns InvalidArgument, with the inputs' `names`, if their
// types differ, or if two sizes differ and neither is 1.
absl::Status Broadcast(const OperatorSchema& schema, absl::Span<const std::string> names,
                       std::vector<TensorDesc>& inputs);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_BROADCAST_H_
