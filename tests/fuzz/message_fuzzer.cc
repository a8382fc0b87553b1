// The handwritten parser for messages with tensor bytes, compared with protobuf's own parser.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "grpcpp/support/byte_buffer.h"
#include "opmill/v1/service.pb.h"
#include "proto/payload.h"
#include "tests/conformance/random.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/message_bytes.h"

namespace opmill {
namespace {

// Splits the bytes as the network may.
grpc::ByteBuffer Cut(const std::string& bytes, uint64_t seed) {
  Random random(seed);
  std::vector<grpc::Slice> slices;
  const uint64_t longest = seed == 0 ? bytes.size() + 1 : 1 + random.Below(64);
  for (size_t at = 0; at < bytes.size();) {
    const std::string piece = bytes.substr(at, random.Below(longest + 1));
    slices.emplace_back(piece);
    at += piece.size();
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string BytesOf(const Payload& payload) {
  std::string bytes(payload.size(), '\0');
  payload.CopyTo(reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

void Compare(const IncomingChunk& chunk, const v1::TensorChunk& expected) {
  FUZZ_CHECK(chunk.tensor_index == expected.tensor_index() && chunk.offset == expected.offset() &&
                 BytesOf(chunk.data) == expected.data(),
             expected.ShortDebugString());
}

void Compare(const IncomingChunk& chunk, const std::string& expected) {
  FUZZ_CHECK(BytesOf(chunk.data) == expected, "");
}

const auto& PayloadOf(const v1::ExecuteStreamRequest& message) { return message.chunks(); }
const auto& PayloadOf(const v1::ExecuteRequest& message) { return message.inputs(); }

std::vector<grpc::Slice> SlicesOf(const v1::ExecuteRequest& message) {
  std::vector<grpc::Slice> slices;
  for (const std::string& input : message.inputs()) slices.emplace_back(input);
  return slices;
}

std::vector<OutgoingChunk> SlicesOf(const v1::ExecuteStreamRequest& message) {
  std::vector<OutgoingChunk> chunks;
  for (const v1::TensorChunk& chunk : message.chunks()) {
    chunks.push_back({chunk.tensor_index(), chunk.offset(), grpc::Slice(chunk.data())});
  }
  return chunks;
}

// Removes unknown fields of a chunk: protobuf keeps them, the parser does not. Those of the message
// itself are in its header.
void DropUnknownOfChunks(v1::ExecuteStreamRequest& message) {
  for (v1::TensorChunk& chunk : *message.mutable_chunks()) chunk.DiscardUnknownFields();
}
void DropUnknownOfChunks(v1::ExecuteRequest&) {}

template <typename Message, typename Join>
void Run(const std::string& bytes, uint64_t seed, PayloadKind kind, const Join& join) {
  Message expected;
  const bool is_message = expected.ParseFromString(bytes);
  const absl::StatusOr<SplitMessage> split = SplitMessage::Split(Cut(bytes, seed), kind);
  if (!split.ok()) {
    FUZZ_CHECK(absl::IsInvalidArgument(split.status()) && IsSentence(split.status()),
               split.status().ToString());
    // A message may be refused for its length or depth although it is valid.
    const bool is_large = bytes.size() > kMaxChunksPerMessage;
    FUZZ_CHECK(!is_message || is_large, split.status().ToString(), " of a message");
    return;
  }
  Message header;
  const bool has_header = header.ParseFromString(split->header());
  FUZZ_CHECK(has_header == is_message, has_header ? "accepted" : "refused", " otherwise");
  if (!is_message) return;
  FUZZ_CHECK(split->chunks().size() == static_cast<size_t>(PayloadOf(expected).size()), "");
  for (size_t i = 0; i < split->chunks().size(); ++i) {
    Compare(split->chunks()[i], PayloadOf(expected)[static_cast<int>(i)]);
  }
  const std::optional<OwnedPayload> file = split->model_file();
  const std::string file_bytes = file.has_value() ? BytesOf(file->bytes) : "";
  FUZZ_CHECK(file_bytes == expected.model_file(), "");
  header.set_model_file(file_bytes);
  DropUnknownOfChunks(expected);
  Message joined;
  FUZZ_CHECK(joined.ParseFromString(MessageBytes(join(header, SlicesOf(expected)))), "");
  FUZZ_CHECK(joined.SerializeAsString() == expected.SerializeAsString(), "");
}

}  // namespace
}  // namespace opmill

// The first byte selects how the others are split, and the message type.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const uint64_t seed = data[0] / 2;
  if (data[0] % 2 == 0) {
    opmill::Run<opmill::v1::ExecuteStreamRequest>(bytes, seed, opmill::PayloadKind::kChunks,
                                                  opmill::JoinChunks);
  } else {
    opmill::Run<opmill::v1::ExecuteRequest>(bytes, seed, opmill::PayloadKind::kInputs,
                                            opmill::JoinInputs);
  }
  return 0;
}
