// Messages whose tensor bytes protobuf never touches. Field 100 of our messages contains them,
// either as TensorChunks or as plain bytes, and field 102 the file of a model; all other fields are
// small and handled by protobuf. An
// incoming message is split into the small fields, which protobuf parses, and views of the tensor
// bytes in place. An outgoing message consists of the small fields, and slices of memory that is
// not copied.
#ifndef OPMILL_PROTO_PAYLOAD_H_
#define OPMILL_PROTO_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace opmill {

inline constexpr uint32_t kPayloadField = 100;
// The file of a model, which is as large as tensors are.
inline constexpr uint32_t kModelFileField = 102;
// The limit on the fields that are not tensor bytes; a descriptor takes a few hundred bytes.
inline constexpr size_t kMaxHeaderBytes = size_t{1} << 20;
// Views take memory too, and empty chunks cost their sender nothing.
inline constexpr size_t kMaxChunksPerMessage = 4096;

// The type of field 100: `repeated TensorChunk chunks` or `repeated bytes inputs`. kInference: not
// field 100, but those of an inference.ModelInferRequest. kInferenceResult: those of a
// ModelInferResponse.
enum class PayloadKind { kChunks, kInputs, kInference, kInferenceResult };

// Bytes within the slices of a SplitMessage; valid as long as the message.
class Payload {
 public:
  Payload() = default;
  Payload(const std::vector<grpc::Slice>* slices, size_t slice, size_t offset, size_t size)
      : slices_(slices), slice_(slice), offset_(offset), size_(size) {}

  size_t size() const { return size_; }
  void CopyTo(std::byte* target) const { CopyTo(0, size_, target); }
  // Copies `size` bytes from `offset` on, all of which must exist.
  void CopyTo(size_t offset, size_t size, std::byte* target) const;
  // Calls `visit` with the parts in which the bytes lie, in order.
  void ForEachPart(absl::FunctionRef<void(absl::Span<const std::byte>)> visit) const {
    ForEachPart(0, size_, visit);
  }

 private:
  friend class WireReader;

  void ForEachPart(size_t offset, size_t size,
                   absl::FunctionRef<void(absl::Span<const std::byte>)> visit) const;

  const std::vector<grpc::Slice>* slices_ = nullptr;
  size_t slice_ = 0;   // the first slice
  size_t offset_ = 0;  // offset in the first slice
  size_t size_ = 0;
};

// Bytes that keep their message alive.
struct OwnedPayload {
  Payload bytes;
  std::shared_ptr<const void> owner;
};

struct IncomingChunk {
  uint32_t tensor_index = 0;  // for kInputs, the index of the input
  uint64_t offset = 0;
  Payload data;
};

class SplitMessage {
 public:
  // Returns InvalidArgument if the bytes are not a protobuf message.
  static absl::StatusOr<SplitMessage> Split(const grpc::ByteBuffer& message, PayloadKind kind);
  // The same, but takes the bytes: `message` is empty afterwards. Saves references to slices.
  static absl::StatusOr<SplitMessage> Take(grpc::ByteBuffer& message, PayloadKind kind);

  const std::string& header() const { return header_; }  // for ParseFromString
  // kInference: raw_input_contents. kInferenceResult: raw_output_contents.
  const std::vector<IncomingChunk>& chunks() const { return chunks_; }
  // kInference: the `contents` messages of each of `inputs`; the header has the inputs without
  // them.
  const std::vector<std::vector<Payload>>& contents() const { return contents_; }
  // Not kInference: field 102; nullopt without it.
  std::optional<OwnedPayload> model_file() const {
    if (!model_file_.has_value()) return std::nullopt;
    return OwnedPayload{*model_file_, bytes_};
  }

 private:
  // The last reference to memory that gRPC has received frees it. In gRPC 1.51 that may dereference
  // null if the last reference is a slice (grpc_slice_unref), but not if it is a message
  // (grpc_byte_buffer_destroy). The message must therefore be destroyed after its slices.
  struct Bytes {
    grpc::ByteBuffer message;
    std::vector<grpc::Slice> slices;
  };

  explicit SplitMessage(std::shared_ptr<Bytes> bytes) : bytes_(std::move(bytes)) {}
  static absl::StatusOr<SplitMessage> Split(std::shared_ptr<Bytes> bytes, PayloadKind kind);

  std::shared_ptr<Bytes> bytes_;  // its address does not change when this is moved
  std::string header_;
  std::vector<IncomingChunk> chunks_;
  std::vector<std::vector<Payload>> contents_;
  std::optional<Payload> model_file_;
};

struct OutgoingChunk {
  uint32_t tensor_index = 0;
  uint64_t offset = 0;
  grpc::Slice data;
};

// The wire form of `header` with these chunks in its field 100.
grpc::ByteBuffer JoinChunks(const google::protobuf::MessageLite& header,
                            std::vector<OutgoingChunk> chunks);
// The wire form of `header` with `contents` in `field`, a field of bytes. If `outer_field` is not
// 0, the result is a message that contains this one in that field.
grpc::ByteBuffer JoinBytes(const google::protobuf::MessageLite& header, uint32_t field,
                           std::vector<grpc::Slice> contents, uint32_t outer_field = 0);
// The same for contents that consist of several slices each.
grpc::ByteBuffer JoinParts(const google::protobuf::MessageLite& header, uint32_t field,
                           std::vector<std::vector<grpc::Slice>> contents);
// The same for a message whose field 100 is plain bytes.
inline grpc::ByteBuffer JoinInputs(const google::protobuf::MessageLite& header,
                                   std::vector<grpc::Slice> inputs) {
  return JoinBytes(header, kPayloadField, std::move(inputs));
}

}  // namespace opmill

#endif  // OPMILL_PROTO_PAYLOAD_H_
