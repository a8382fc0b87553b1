// Messages whose tensor bytes protobuf never touches. Field 100 of a message holds them, either as
// TensorChunks or as plain bytes; everything else is small and is protobuf's. So a message that
// comes is split into the small fields, which protobuf parses, and views of the tensor bytes where
// they arrived; a message that goes is the small fields, and slices over memory that is not copied.
#ifndef OPMILL_PROTO_PAYLOAD_H_
#define OPMILL_PROTO_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace opmill {

inline constexpr uint32_t kPayloadField = 100;
// Of the fields that are not tensor bytes; a descriptor takes some hundred bytes.
inline constexpr size_t kMaxHeaderBytes = size_t{1} << 20;
// Views take memory too, and empty ones cost their sender nothing.
inline constexpr size_t kMaxChunksPerMessage = 4096;

// What field 100 is: `repeated TensorChunk chunks` or `repeated bytes inputs`.
enum class PayloadKind { kChunks, kInputs };

// Bytes inside the slices of a SplitMessage, and no longer valid than it.
class Payload {
 public:
  Payload() = default;
  Payload(const std::vector<grpc::Slice>* slices, size_t slice, size_t offset, size_t size)
      : slices_(slices), slice_(slice), offset_(offset), size_(size) {}

  size_t size() const { return size_; }
  void CopyTo(std::byte* target) const;

 private:
  const std::vector<grpc::Slice>* slices_ = nullptr;
  size_t slice_ = 0;   // the first slice,
  size_t offset_ = 0;  // and where in it
  size_t size_ = 0;
};

struct IncomingChunk {
  uint32_t tensor_index = 0;  // under kInputs: the how-manieth
  uint64_t offset = 0;
  Payload data;
};

class SplitMessage {
 public:
  // InvalidArgument where the bytes are no protobuf message.
  static absl::StatusOr<SplitMessage> Split(const grpc::ByteBuffer& message, PayloadKind kind);

  const std::string& header() const { return header_; }  // for ParseFromString
  const std::vector<IncomingChunk>& chunks() const { return chunks_; }

 private:
  // Who lets go last of memory that gRPC has read into frees it, and gRPC 1.51 may then dereference
  // null where that is a slice (grpc_slice_unref), not where it is a message
  // (grpc_byte_buffer_destroy). So the message goes after its slices.
  struct Bytes {
    grpc::ByteBuffer message;
    std::vector<grpc::Slice> slices;
  };

  explicit SplitMessage(std::unique_ptr<Bytes> bytes) : bytes_(std::move(bytes)) {}

  std::unique_ptr<Bytes> bytes_;  // stays where it is when this is moved
  std::string header_;
  std::vector<IncomingChunk> chunks_;
};

struct OutgoingChunk {
  uint32_t tensor_index = 0;
  uint64_t offset = 0;
  grpc::Slice data;
};

// The wire form of `header` with these chunks in its field 100.
grpc::ByteBuffer JoinChunks(const google::protobuf::MessageLite& header,
                            std::vector<OutgoingChunk> chunks);
// The same for a message whose field 100 is plain bytes.
grpc::ByteBuffer JoinInputs(const google::protobuf::MessageLite& header,
                            std::vector<grpc::Slice> inputs);

}  // namespace opmill

#endif  // OPMILL_PROTO_PAYLOAD_H_
