// Reads ONNX files, which may come from anybody: every size is checked before memory is taken.
#ifndef OPMILL_KERNELS_ONNX_READ_MODEL_H_
#define OPMILL_KERNELS_ONNX_READ_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/onnx/graph.h"

namespace opmill::onnx {

inline constexpr int64_t kOldestOpset = 6;
inline constexpr int64_t kNewestOpset =
    28;  // since 23, supported operators have only got more types

struct ReadLimits {
  uint64_t memory_bytes = uint64_t{2} << 30;  // of the model in memory, with external data
  size_t nodes = 1 << 16;                     // with those of branches
  uint32_t graph_depth = 8;                   // branches within branches
  size_t name_bytes = 1024;                   // of values, nodes, operators, attributes
};

// What older opsets have as attributes is input in newer ones; the graph has the newest form.
// Constant nodes and initializers are constants. Errors:
//   InvalidArgument    the model is malformed; the sentence names the node or value
//   ResourceExhausted  it is beyond a limit
//   NotFound           there is no such file
//   Cancelled          after a stop of `abandoned`
absl::StatusOr<Graph> ReadModel(absl::string_view bytes, const ReadLimits& limits = {},
                                const std::stop_token& abandoned = {});
// `path` is UTF-8. External data must be in the folder of the file, or below.
absl::StatusOr<Graph> ReadModelFile(const std::string& path, const ReadLimits& limits = {},
                                    const std::stop_token& abandoned = {});

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_READ_MODEL_H_
