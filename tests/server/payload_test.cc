// Splitting and joining, compared with protobuf's handling of the same bytes.
#include "proto/payload.h"

#ifdef __GLIBC__
#include <dlfcn.h>
#endif

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "opmill/v1/service.pb.h"
#include "tests/conformance/random.h"
#include "tests/server/wire_bytes.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A field with a number that no message uses.
std::string UnknownField(Random& random, int depth = 0) {
  const uint32_t field = 200 + static_cast<uint32_t>(random.Below(1 << 20));
  switch (random.Below(depth < 4 ? 5 : 4)) {
    case 0:
      return Tag(field, 0) + Varint(random.Bits() >> random.Below(64));
    case 1:
      return Tag(field, 1) + RandomBytes(random, 8);
    case 2:
      return Delimited(field, RandomBytes(random, random.Below(20)));
    case 3:
      return Tag(field, 5) + RandomBytes(random, 4);
    default: {
      std::string group = Tag(field, 3);
      for (uint64_t i = random.Below(3); i > 0; --i) group += UnknownField(random, depth + 1);
      return group + Tag(field, 4);
    }
  }
}

std::string Shuffled(Random& random, std::vector<std::string> pieces) {
  random.Shuffle(pieces);
  std::string joined;
  for (const std::string& piece : pieces) joined += piece;
  return joined;
}

// The fields of a TensorChunk: any of them absent or repeated, in any order, mixed with unknown
// ones.
std::string RandomChunk(Random& random, size_t max_bytes) {
  std::vector<std::string> pieces;
  for (uint64_t i = random.Below(6); i > 0; --i) {
    v1::TensorChunk piece;
    if (random.OneIn(3)) piece.set_tensor_index(static_cast<uint32_t>(random.Bits()));
    if (random.OneIn(3)) piece.set_offset(random.Bits() >> random.Below(64));
    if (random.OneIn(2)) piece.set_data(RandomBytes(random, random.Below(max_bytes)));
    pieces.push_back(piece.SerializeAsString());
    if (random.OneIn(4)) pieces.push_back(UnknownField(random));
    if (random.OneIn(8)) pieces.push_back(Tag(kPayloadField, 0) + Varint(random.Bits()));
  }
  if (random.OneIn(4)) pieces.push_back(Delimited(kPayloadField, ""));
  return Shuffled(random, std::move(pieces));
}

// Partial descriptors, which protobuf merges; for a oneof, the last one wins.
v1::OperatorDesc RandomOperator(Random& random) {
  v1::OperatorDesc desc;
  v1::TensorDesc tensor;
  tensor.set_data_type(static_cast<v1::DataType>(random.Below(12)));
  for (uint64_t i = random.Below(4); i > 0; --i) {
    tensor.add_sizes(static_cast<uint32_t>(random.Bits()));
  }
  switch (random.Below(3)) {
    case 0:
      if (random.OneIn(2)) *desc.mutable_reduce()->mutable_input() = tensor;
      desc.mutable_reduce()->add_axes(static_cast<uint32_t>(random.Below(8)));
      break;
    case 1:
      if (random.OneIn(2)) desc.mutable_top_k()->set_k(static_cast<uint32_t>(random.Bits()));
      *desc.mutable_top_k()->mutable_output_values() = tensor;
      break;
    default:
      break;
  }
  return desc;
}

void FillHeader(Random& random, v1::ExecuteRequest& header) {
  if (random.OneIn(2)) *header.mutable_operator_() = RandomOperator(random);
  if (random.OneIn(3)) header.set_feature_level(v1::FEATURE_LEVEL_3_0);
}

void FillHeader(Random& random, v1::ExecuteStreamRequest& header) {
  if (random.OneIn(2)) header.set_execution_id(random.Bits());
  if (random.OneIn(3)) *header.mutable_begin()->mutable_operator_() = RandomOperator(random);
  if (random.OneIn(4)) header.mutable_begin()->mutable_timeout()->set_nanos(7);
  if (random.OneIn(6)) header.mutable_cancel();
  if (random.OneIn(4)) header.set_end_of_inputs(random.OneIn(2));
}

void FillHeader(Random& random, v1::ExecuteStreamResponse& header) {
  if (random.OneIn(2)) header.set_execution_id(random.Bits());
  if (random.OneIn(3)) header.mutable_started()->add_output_bytes(random.Bits());
  if (random.OneIn(3)) header.mutable_statistics()->set_batch_size(3);
  if (random.OneIn(3)) header.mutable_status()->set_message("A sentence, with \xC3\xA4.");
}

v1::TensorChunk ToChunk(const IncomingChunk& from) {
  v1::TensorChunk to;
  to.set_tensor_index(from.tensor_index);
  to.set_offset(from.offset);
  to.mutable_data()->resize(from.data.size());
  from.data.CopyTo(reinterpret_cast<std::byte*>(to.mutable_data()->data()));
  return to;
}

// The common interface of the two test types: the bytes of field 100.
template <typename Message>
struct Payloads {
  static constexpr PayloadKind kKind = PayloadKind::kChunks;
  static std::string Generate(Random& random, size_t max_bytes) {
    return RandomChunk(random, max_bytes);
  }
  static auto* Field(Message& message) { return message.mutable_chunks(); }
  // Unknown fields are ignored.
  static std::string Text(v1::TensorChunk chunk) {
    chunk.DiscardUnknownFields();
    return chunk.SerializeAsString();
  }
  static std::string Text(const IncomingChunk& chunk, size_t) { return Text(ToChunk(chunk)); }
};

template <>
struct Payloads<v1::ExecuteRequest> {
  static constexpr PayloadKind kKind = PayloadKind::kInputs;
  static std::string Generate(Random& random, size_t max_bytes) {
    return RandomBytes(random, random.Below(max_bytes));
  }
  static auto* Field(v1::ExecuteRequest& message) { return message.mutable_inputs(); }
  static std::string Text(const std::string& input) { return input; }
  static std::string Text(const IncomingChunk& input, size_t index) {
    EXPECT_EQ(input.tensor_index, index);
    EXPECT_EQ(input.offset, 0u);
    return ToChunk(input).data();
  }
};

template <typename Message>
std::string RandomWire(Random& random, size_t max_bytes) {
  std::vector<std::string> pieces;
  for (uint64_t i = 1 + random.Below(5); i > 0; --i) {
    Message header;
    FillHeader(random, header);
    pieces.push_back(header.SerializeAsString());
    if (random.OneIn(3)) pieces.push_back(UnknownField(random));
    if (random.OneIn(8)) pieces.push_back(Tag(kPayloadField, 5) + RandomBytes(random, 4));
    if (random.OneIn(2)) {
      pieces.push_back(Delimited(kPayloadField, Payloads<Message>::Generate(random, max_bytes)));
    }
  }
  return Shuffled(random, std::move(pieces));
}

// Splits the bytes anywhere, including empty slices.
grpc::ByteBuffer Sliced(Random& random, absl::string_view bytes) {
  const size_t longest = size_t{1} << random.Below(12);
  std::vector<grpc::Slice> slices;
  while (!bytes.empty() || slices.empty() || random.OneIn(8)) {
    const size_t size = std::min<size_t>(random.Below(longest + 1), bytes.size());
    slices.emplace_back(bytes.data(), size);
    bytes.remove_prefix(size);
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// Returns "" if protobuf and Split agree on the bytes: both refuse them, or both read the same.
template <typename Message>
std::string Disagreement(Random& random, const std::string& bytes) {
  Message whole;
  const bool protobuf_takes_it = whole.ParseFromString(bytes);
  const auto split = SplitMessage::Split(Sliced(random, bytes), Payloads<Message>::kKind);
  Message header;
  const bool we_take_it = split.ok() && header.ParseFromString(split->header());
  if (!we_take_it) {
    return protobuf_takes_it ? "only protobuf takes it: " + std::string(split.status().message())
                             : "";
  }
  if (!protobuf_takes_it) return "protobuf refuses it";
  auto* field = Payloads<Message>::Field(whole);
  if (static_cast<size_t>(field->size()) != split->chunks().size())
    return "another count of chunks";
  for (int i = 0; i < field->size(); ++i) {
    if (Payloads<Message>::Text(field->Get(i)) != Payloads<Message>::Text(split->chunks()[i], i)) {
      return "another chunk";
    }
  }
  field->Clear();
  const std::optional<OwnedPayload> file = split->model_file();
  std::string text(file.has_value() ? file->bytes.size() : 0, '\0');
  if (file.has_value()) file->bytes.CopyTo(reinterpret_cast<std::byte*>(text.data()));
  if constexpr (requires { whole.model_file(); }) {
    if (whole.model_file() != text) return "another file of a model";
    whole.clear_model_file();
  } else {  // to protobuf it is unknown
    auto& unknown = *whole.GetReflection()->MutableUnknownFields(&whole);
    for (int i = unknown.field_count() - 1; i >= 0; --i) {
      const auto& each = unknown.field(i);
      if (each.number() == kModelFileField &&
          each.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
        unknown.DeleteSubrange(i, 1);
      }
    }
  }
  return header.SerializeAsString() == whole.SerializeAsString() ? "" : "another header";
}

template <typename Message>
class PayloadTest : public ::testing::Test {};

using Messages =
    ::testing::Types<v1::ExecuteRequest, v1::ExecuteStreamRequest, v1::ExecuteStreamResponse>;
TYPED_TEST_SUITE(PayloadTest, Messages);

TYPED_TEST(PayloadTest, SplitsWhateverProtobufReads) {
  Random random(1);
  size_t with_chunks = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string bytes = RandomWire<TypeParam>(random, i % 10 == 0 ? 4000 : 40);
    ASSERT_TRUE(TypeParam().ParseFromString(bytes));
    ASSERT_EQ(Disagreement<TypeParam>(random, bytes), "") << "message " << i;
    TypeParam whole;
    whole.ParseFromString(bytes);
    if (Payloads<TypeParam>::Field(whole)->size() > 1) ++with_chunks;
  }
  EXPECT_GT(with_chunks, 1000u);
}

TYPED_TEST(PayloadTest, AgreesWithProtobufOnEveryTruncation) {
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    const std::string bytes = RandomWire<TypeParam>(random, 40);
    for (size_t size = 0; size < bytes.size(); ++size) {
      ASSERT_EQ(Disagreement<TypeParam>(random, bytes.substr(0, size)), "")
          << "message " << i << " cut to " << size;
    }
  }
}

TYPED_TEST(PayloadTest, AgreesWithProtobufOnEveryFlippedByte) {
  Random random(3);
  for (int i = 0; i < 100; ++i) {
    const std::string bytes = RandomWire<TypeParam>(random, 40);
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ static_cast<char>(1 + random.Below(255)));
      ASSERT_EQ(Disagreement<TypeParam>(random, flipped), "")
          << "message " << i << " with byte " << at
          << " changed: " << ::testing::PrintToString(flipped);
    }
  }
}

TYPED_TEST(PayloadTest, AgreesWithProtobufOnNoise) {
  Random random(4);
  for (int i = 0; i < 20000; ++i) {
    // Mostly small numbers, because these are tags and lengths.
    std::string noise = RandomBytes(random, random.Below(60));
    for (char& byte : noise) {
      if (random.OneIn(2)) byte = static_cast<char>(byte & 0x3F);
    }
    const std::string bytes = random.OneIn(2) ? Delimited(kPayloadField, noise) : noise;
    ASSERT_EQ(Disagreement<TypeParam>(random, bytes), "") << ::testing::PrintToString(bytes);
  }
}

TYPED_TEST(PayloadTest, AgreesWithProtobufOnNumbersWrittenTooLong) {
  Random random(10);
  for (int bytes = 1; bytes <= 11; ++bytes) {
    for (const uint64_t number : {uint64_t{0}, uint64_t{5}, uint64_t{1} << 33}) {
      std::string padded = Varint(number);
      while (padded.size() < static_cast<size_t>(bytes)) {
        padded.back() = static_cast<char>(padded.back() | 0x80);
        padded += '\0';
      }
      for (const std::string& message :
           {padded + "12345", Tag(kPayloadField, 2) + padded + "12345",
            Delimited(kPayloadField, Tag(1, 0) + padded), Tag(200, 0) + padded,
            Delimited(kPayloadField, Tag(kPayloadField, 2) + padded + "12345")}) {
        ASSERT_EQ(Disagreement<TypeParam>(random, message), "")
            << number << " in " << bytes << " bytes: " << ::testing::PrintToString(message);
      }
    }
  }
}

template <typename Message>
grpc::ByteBuffer Join(Random& random, const Message& header, Message& expected) {
  std::vector<OutgoingChunk> chunks;
  for (uint64_t i = random.Below(5); i > 0; --i) {
    v1::TensorChunk& chunk = *expected.add_chunks();
    if (random.OneIn(2)) chunk.set_tensor_index(static_cast<uint32_t>(random.Bits()));
    if (random.OneIn(2)) chunk.set_offset(random.Bits());
    chunk.set_data(RandomBytes(random, random.Below(random.OneIn(2) ? 3 : 3000)));
    chunks.push_back({.tensor_index = chunk.tensor_index(),
                      .offset = chunk.offset(),
                      .data = grpc::Slice(chunk.data())});
  }
  return JoinChunks(header, std::move(chunks));
}

grpc::ByteBuffer Join(Random& random, const v1::ExecuteRequest& header,
                      v1::ExecuteRequest& expected) {
  std::vector<grpc::Slice> inputs;
  for (uint64_t i = random.Below(4); i > 0; --i) {
    expected.add_inputs(RandomBytes(random, random.Below(random.OneIn(2) ? 3 : 3000)));
    inputs.emplace_back(expected.inputs().rbegin()->data(), expected.inputs().rbegin()->size());
  }
  return JoinInputs(header, std::move(inputs));
}

TYPED_TEST(PayloadTest, JoinsWhatProtobufReadsAsTheMessage) {
  Random random(5);
  for (int i = 0; i < 2000; ++i) {
    TypeParam header;
    FillHeader(random, header);
    TypeParam expected = header;
    const std::string bytes = TextOf(Join(random, header, expected));
    TypeParam read;
    ASSERT_TRUE(read.ParseFromString(bytes));
    ASSERT_EQ(read.SerializeAsString(), expected.SerializeAsString()) << "message " << i;
  }
}

TEST(Payload, DoesNotCopyLongChunksWhenItJoins) {
  const std::string bytes(5000, 'x');
  const grpc::Slice data(bytes.data(), bytes.size(), grpc::Slice::STATIC_SLICE);
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(JoinChunks(v1::ExecuteResponse(), {{.offset = 9, .data = data}}).Dump(&slices).ok());
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(reinterpret_cast<const char*>(slices[1].begin()), bytes.data());
}

TEST(Payload, StaysReadableWhereTheSplitMessageMoves) {
  Random random(6);
  const std::string bytes = Delimited(kPayloadField, Delimited(kPayloadField, "0123456789"));
  auto split = SplitMessage::Split(Sliced(random, bytes), PayloadKind::kChunks);
  ASSERT_TRUE(split.ok());
  const SplitMessage moved = *std::move(split);
  EXPECT_EQ(ToChunk(moved.chunks()[0]).data(), "0123456789");
}

TEST(Payload, IsCopiedInParts) {
  Random random(8);
  const std::string bytes = RandomBytes(random, 60);
  for (int i = 0; i < 50; ++i) {
    auto split =
        SplitMessage::Split(Sliced(random, Delimited(kPayloadField, bytes)), PayloadKind::kInputs);
    ASSERT_TRUE(split.ok());
    const Payload& payload = split->chunks()[0].data;
    for (size_t offset = 0; offset <= bytes.size(); ++offset) {
      std::string part(random.Below(bytes.size() - offset + 1), '\0');
      payload.CopyTo(offset, part.size(), reinterpret_cast<std::byte*>(part.data()));
      EXPECT_EQ(part, bytes.substr(offset, part.size()));
    }
  }
}

TEST(Payload, IsTakenOutOfTheMessage) {
  Random random(6);
  grpc::ByteBuffer message =
      Sliced(random, Delimited(kPayloadField, Delimited(kPayloadField, "0123456789")));
  const auto split = SplitMessage::Take(message, PayloadKind::kChunks);
  ASSERT_TRUE(split.ok());
  EXPECT_EQ(message.Length(), 0u);
  EXPECT_EQ(ToChunk(split->chunks()[0]).data(), "0123456789");
}

TEST(Payload, TheFileOfAModelIsNotInTheHeaderAndOutlivesTheMessage) {
  Random random(8);
  const std::string large(2 << 20, 'm');
  for (const PayloadKind kind : {PayloadKind::kChunks, PayloadKind::kInputs}) {
    std::optional<OwnedPayload> file;
    {
      const auto split = SplitMessage::Split(
          Sliced(random, Delimited(kModelFileField, "first") + Delimited(300, "header") +
                             Delimited(kModelFileField, large)),
          kind);
      ASSERT_TRUE(split.ok());
      EXPECT_EQ(split->header(), Delimited(300, "header"));
      file = split->model_file();
    }
    ASSERT_TRUE(file.has_value());
    std::string bytes(file->bytes.size(), '\0');
    file->bytes.CopyTo(reinterpret_cast<std::byte*>(bytes.data()));
    EXPECT_EQ(bytes, large);
    EXPECT_FALSE(SplitMessage::Split(Sliced(random, Delimited(300, "")), kind)->model_file());
  }
}

TEST(Payload, AcceptsAHeaderOfUpToOneMebibyte) {
  Random random(7);
  const auto split = [&random](size_t header_bytes) {
    const std::string field = Delimited(300, std::string(header_bytes - 5, 'x'));
    EXPECT_EQ(field.size(), header_bytes);
    return SplitMessage::Split(
        Sliced(random, Delimited(kPayloadField, "") + field + Delimited(kPayloadField, "")),
        PayloadKind::kChunks);
  };
  const auto largest = split(kMaxHeaderBytes);
  ASSERT_TRUE(largest.ok()) << largest.status();
  EXPECT_EQ(largest->header().size(), kMaxHeaderBytes);
  EXPECT_EQ(largest->chunks().size(), 2u);
  EXPECT_EQ(split(kMaxHeaderBytes + 1).status(),
            absl::InvalidArgumentError("The fields of the message that are not tensor bytes take "
                                       "more than 1048576 bytes."));
}

// Each chunk takes three bytes of the message, but much more memory of the reader.
TEST(Payload, LimitsTheNumberOfChunks) {
  Random random(9);
  std::string most;
  for (size_t i = 0; i < kMaxChunksPerMessage; ++i) most += Delimited(kPayloadField, "");
  for (const PayloadKind kind : {PayloadKind::kChunks, PayloadKind::kInputs}) {
    const auto split = SplitMessage::Split(Sliced(random, most), kind);
    ASSERT_TRUE(split.ok()) << split.status();
    EXPECT_EQ(split->chunks().size(), kMaxChunksPerMessage);
    EXPECT_EQ(
        SplitMessage::Split(Sliced(random, most + Delimited(kPayloadField, "")), kind).status(),
        absl::InvalidArgumentError("The message holds more than 4096 runs of tensor bytes."));
  }
}

// The contents of all inputs together.
TEST(Payload, LimitsTheNumberOfContents) {
  Random random(10);
  constexpr size_t kInputs = 64;
  const std::string contents = Delimited(5, "");
  std::string input;
  for (size_t i = 0; i < kMaxChunksPerMessage / kInputs; ++i) input += contents;
  std::string most;
  for (size_t i = 0; i < kInputs; ++i) most += Delimited(5, input);
  const auto split = SplitMessage::Split(Sliced(random, most), PayloadKind::kInference);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->contents().size(), kInputs);
  EXPECT_EQ(
      SplitMessage::Split(Sliced(random, most + Delimited(5, contents)), PayloadKind::kInference)
          .status(),
      absl::InvalidArgumentError("The message holds more than 4096 runs of tensor bytes."));
}

TEST(Payload, NamesTheByteWhereAMessageIsInvalid) {
  Random random(8);
  const auto status = SplitMessage::Split(Sliced(random, "\x08\x07\xFF"), PayloadKind::kChunks);
  EXPECT_EQ(status.status(),
            absl::InvalidArgumentError("The message is not a protobuf message: its field at byte 2 "
                                       "cannot be read."));
}

// The only known difference from protobuf, which accepts groups up to a depth of 100.
TEST(Payload, RefusesUnknownGroupsDeeperThan32) {
  Random random(9);
  const auto nested = [](int depth) {
    std::string group;
    for (int i = 0; i < depth; ++i) group = Tag(200, 3) + group + Tag(200, 4);
    return group;
  };
  EXPECT_EQ(Disagreement<v1::ExecuteStreamRequest>(random, nested(32)), "");
  EXPECT_THAT(Disagreement<v1::ExecuteStreamRequest>(random, nested(33)),
              HasSubstr("only protobuf takes it: The message is not a protobuf message"));
}

#ifdef __GLIBC__
// If null, gRPC must not free memory of its quota on this thread.
bool GrpcMayFree() {
  void* const* context =
      static_cast<void* const*>(dlsym(RTLD_DEFAULT, "_ZN9grpc_core7ExecCtx9exec_ctx_E"));
  return context != nullptr && *context != nullptr;
}

TEST(SplitMessage, FreesTheMessageOnAGrpcThread) {
  static char bytes[] = "\x08\x07";
  static std::vector<bool>& freed = *new std::vector<bool>();
  {
    const grpc::Slice slice(bytes, 2, [](void*) { freed.push_back(GrpcMayFree()); });
  }
  if (freed != std::vector<bool>{false}) GTEST_SKIP() << "this gRPC frees slices as messages";
  freed.clear();
  std::optional<grpc::ByteBuffer> message;
  {
    const grpc::Slice slice(bytes, 2, [](void*) { freed.push_back(GrpcMayFree()); });
    message.emplace(&slice, 1);
  }
  {
    const auto split = SplitMessage::Split(*message, PayloadKind::kChunks);
    EXPECT_TRUE(split.ok());
    message.reset();
  }
  EXPECT_THAT(freed, ElementsAre(true));
}
#endif

}  // namespace
}  // namespace opmill
