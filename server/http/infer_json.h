// Requests for inference and their results, as JSON with or without the binary extension: elements
// of tensors are in the JSON, or follow it as bytes.
#ifndef OPMILL_SERVER_HTTP_INFER_JSON_H_
#define OPMILL_SERVER_HTTP_INFER_JSON_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/payload.h"
#include "server/http/http_body.h"

namespace opmill {

// How the caller wants its outputs.
struct ResultForm {
  bool IsBinary(const std::string& output) const {
    const auto found = is_binary_output.find(output);
    return found == is_binary_output.end() ? is_binary : found->second;
  }

  bool is_binary = false;
  absl::flat_hash_map<std::string, bool> is_binary_output;  // where it differs
  absl::flat_hash_set<std::string> shared_outputs;          // in shared memory
};

// Whether lists of numbers are read without a tree of them, which makes no difference but time.
enum class TakeLists { kYes, kNo };

// The serialized ModelInferRequest that the first `json_size` bytes of the body, and the tensors
// behind them, mean. `form` is set. Tensors of the binary extension are not copied.
absl::StatusOr<grpc::ByteBuffer> DecodeInfer(const std::string& model, const std::string& version,
                                             const HttpBody& body, size_t json_size,
                                             ResultForm& form,
                                             TakeLists take_lists = TakeLists::kYes);

struct InferResult {
  std::string json;
  bool has_binary = false;
  // The outputs that follow the JSON, in `message`.
  std::vector<absl::Span<const std::byte>> binary;
  std::optional<SplitMessage> message;
};

// Of a serialized ModelInferResponse, which it takes. `max_json_bytes`: of all elements.
absl::StatusOr<InferResult> EncodeResult(grpc::ByteBuffer& response, const ResultForm& form,
                                         size_t max_json_bytes);

}  // namespace opmill

#endif  // OPMILL_SERVER_HTTP_INFER_JSON_H_
