#ifndef OPMILL_KERNELS_ONNX_EVALUATE_H_
#define OPMILL_KERNELS_ONNX_EVALUATE_H_

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/onnx/graph.h"
#include "kernels/onnx/operator_table.h"

namespace opmill::onnx {

// Computes a validated program with the reference operators. `memory` has the bytes of the first
// values, with 4 more bytes each, and gets those of the others.
absl::Status Compute(const Program& program, std::vector<std::string>& memory,
                     const std::stop_token& abandoned = {});
// The elements of the view in row-major order.
std::string CopyView(const View& view, const std::string& bytes, size_t element_bytes);

// The outputs of a node whose inputs are constant and whose outputs have types, computed by the
// reference operators. nullopt if they cannot be computed, if the node only makes views of more
// than `most_view_bytes`, or after a stop of `abandoned`.
std::optional<std::vector<Bytes>> Evaluate(const OperatorRow& row, const Node& node,
                                           const Values& values, uint64_t most_view_bytes,
                                           const std::stop_token& abandoned = {});

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_EVALUATE_H_
