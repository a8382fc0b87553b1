#include "proto/payload.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire_reader.h"

namespace opmill {
namespace {

constexpr uint32_t kChunkTensorIndexField = 1;
constexpr uint32_t kChunkOffsetField = 2;
// Of inference.ModelInferRequest, and of its inputs.
constexpr uint32_t kRawInputContentsField = 7;
constexpr uint32_t kInferInputsField = 5;
constexpr uint32_t kContentsField = 5;
// Of inference.ModelInferResponse.
constexpr uint32_t kRawOutputContentsField = 6;

uint32_t PayloadFieldOf(PayloadKind kind) {
  switch (kind) {
    case PayloadKind::kInference:
      return kRawInputContentsField;
    case PayloadKind::kInferenceResult:
      return kRawOutputContentsField;
    default:
      return kPayloadField;
  }
}

// As protobuf does: of a field given twice the last counts, unknown ones are passed over.
bool ReadChunk(WireReader& reader, IncomingChunk& chunk) {
  const std::optional<uint64_t> size = reader.ReadSize();
  if (!size) return false;
  const size_t end = reader.position() + static_cast<size_t>(*size);
  while (reader.position() < end) {
    const std::optional<WireTag> tag = reader.ReadTag();
    if (!tag) return false;
    if (tag->field == kPayloadField && tag->type == kLengthDelimited) {
      const std::optional<Payload> data = reader.ReadBytes();
      if (!data) return false;
      chunk.data = *data;
    } else if (tag->type == kVarint &&
               (tag->field == kChunkTensorIndexField || tag->field == kChunkOffsetField)) {
      const std::optional<uint64_t> value = reader.ReadVarint();
      if (!value) return false;
      if (tag->field == kChunkOffsetField) {
        chunk.offset = *value;
      } else {
        chunk.tensor_index = static_cast<uint32_t>(*value);
      }
    } else if (!reader.Skip(*tag)) {
      return false;
    }
  }
  return reader.position() == end;
}

// Appends the bytes from there to the reader's position.
void AppendFrom(const WireReader& reader, size_t slice, size_t offset, size_t position,
                std::string& to) {
  const Payload field = reader.From(slice, offset, position);
  const size_t size = to.size();
  to.resize(size + field.size());
  field.CopyTo(reinterpret_cast<std::byte*>(to.data() + size));
}

void AppendVarint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}

void AppendTag(std::string& to, uint32_t field, WireType type) {
  AppendVarint(to, uint64_t{field} << 3 | type);
}

absl::Status HeaderTooLong() {
  return absl::InvalidArgumentError(
      absl::StrCat("The fields of the message that are not tensor bytes take more than ",
                   kMaxHeaderBytes, " bytes."));
}

absl::Status TooManyParts() {
  return absl::InvalidArgumentError(
      absl::StrCat("The message holds more than ", kMaxChunksPerMessage, " runs of tensor bytes."));
}

absl::Status Malformed(size_t position) {
  return absl::InvalidArgumentError(absl::StrCat(
      "The message is not a protobuf message: its field at byte ", position, " cannot be read."));
}

// Reads an InferInputTensor: its contents, and its other fields, which become a field of `header`.
// `parts` counts the contents of all inputs.
absl::Status ReadInferInput(WireReader& reader, std::vector<Payload>& contents, size_t& parts,
                            std::string& header) {
  const size_t start = reader.position();
  const std::optional<uint64_t> size = reader.ReadSize();
  if (!size) return Malformed(start);
  const size_t end = reader.position() + static_cast<size_t>(*size);
  std::string rest;
  while (reader.position() < end) {
    const size_t slice = reader.slice();
    const size_t offset = reader.offset();
    const size_t position = reader.position();
    const std::optional<WireTag> tag = reader.ReadTag();
    if (!tag) return Malformed(position);
    if (tag->field == kContentsField && tag->type == kLengthDelimited) {
      const std::optional<Payload> data = reader.ReadBytes();
      if (!data) return Malformed(position);
      if (parts++ == kMaxChunksPerMessage) return TooManyParts();
      contents.push_back(*data);
      continue;
    }
    if (!reader.Skip(*tag)) return Malformed(position);
    if (reader.position() - position > kMaxHeaderBytes - rest.size()) return HeaderTooLong();
    AppendFrom(reader, slice, offset, position, rest);
  }
  if (reader.position() != end) return Malformed(start);
  AppendTag(header, kInferInputsField, kLengthDelimited);
  AppendVarint(header, rest.size());
  header += rest;
  return absl::OkStatus();
}

// Slices in the order of the wire. Short runs of bytes gather in one slice.
class Joiner {
 public:
  explicit Joiner(const google::protobuf::MessageLite& header, std::string before = {})
      : pending_(std::move(before)) {
    pending_.reserve(kPendingBytes);
    header.AppendToString(&pending_);
  }

  std::string& pending() { return pending_; }

  void Append(grpc::Slice slice) {
    constexpr size_t kCopyBelow = 1024;  // a slice of its own costs about as much as the copy
    if (slice.size() < kCopyBelow) {
      pending_.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
      return;
    }
    Flush();
    slices_.push_back(std::move(slice));
  }

  grpc::ByteBuffer Finish() {
    if (!pending_.empty() || slices_.empty()) Flush();
    return grpc::ByteBuffer(slices_.data(), slices_.size());
  }

 private:
  void Flush() {
    slices_.emplace_back(pending_);
    pending_.clear();
  }

  static constexpr size_t kPendingBytes = 256;  // the most of what a small answer takes

  std::string pending_;
  std::vector<grpc::Slice> slices_;
};

}  // namespace

void Payload::CopyTo(size_t offset, size_t size, std::byte* target) const {
  ForEachPart(offset, size, [&target](absl::Span<const std::byte> part) {
    std::memcpy(target, part.data(), part.size());
    target += part.size();
  });
}

void Payload::ForEachPart(size_t offset, size_t size,
                          absl::FunctionRef<void(absl::Span<const std::byte>)> visit) const {
  size_t left = size;
  offset += offset_;
  for (size_t i = slice_; left > 0; ++i) {
    const grpc::Slice& slice = (*slices_)[i];
    if (offset >= slice.size()) {
      offset -= slice.size();
      continue;
    }
    const size_t count = std::min(left, slice.size() - offset);
    visit(absl::MakeSpan(reinterpret_cast<const std::byte*>(slice.begin()) + offset, count));
    left -= count;
    offset = 0;
  }
}

absl::StatusOr<SplitMessage> SplitMessage::Split(const grpc::ByteBuffer& message,
                                                 PayloadKind kind) {
  auto bytes = std::make_shared<Bytes>();
  bytes->message = message;
  return Split(std::move(bytes), kind);
}

absl::StatusOr<SplitMessage> SplitMessage::Take(grpc::ByteBuffer& message, PayloadKind kind) {
  auto bytes = std::make_shared<Bytes>();
  bytes->message.Swap(&message);
  return Split(std::move(bytes), kind);
}

absl::StatusOr<SplitMessage> SplitMessage::Split(std::shared_ptr<Bytes> bytes, PayloadKind kind) {
  if (!bytes->message.Dump(&bytes->slices).ok()) {
    return absl::InternalError("The message's bytes cannot be read.");
  }
  SplitMessage split(std::move(bytes));
  const uint32_t payload_field = PayloadFieldOf(kind);
  size_t contents_parts = 0;
  WireReader reader(split.bytes_->slices);
  while (reader.remaining() > 0) {
    const size_t slice = reader.slice();
    const size_t offset = reader.offset();
    const size_t position = reader.position();
    const std::optional<WireTag> tag = reader.ReadTag();
    if (!tag) return Malformed(position);
    if (tag->field == payload_field && tag->type == kLengthDelimited) {
      IncomingChunk chunk;
      if (kind == PayloadKind::kChunks) {
        if (!ReadChunk(reader, chunk)) return Malformed(position);
      } else {
        const std::optional<Payload> data = reader.ReadBytes();
        if (!data) return Malformed(position);
        chunk.tensor_index = static_cast<uint32_t>(split.chunks_.size());
        chunk.data = *data;
      }
      if (split.chunks_.size() == kMaxChunksPerMessage) return TooManyParts();
      split.chunks_.push_back(chunk);
      continue;
    }
    if (kind != PayloadKind::kInference && tag->field == kModelFileField &&
        tag->type == kLengthDelimited) {
      split.model_file_ = reader.ReadBytes();
      if (!split.model_file_.has_value()) return Malformed(position);
    } else if (kind == PayloadKind::kInference && tag->field == kInferInputsField &&
               tag->type == kLengthDelimited) {
      if (split.contents_.size() == kMaxChunksPerMessage) return TooManyParts();
      absl::Status read =
          ReadInferInput(reader, split.contents_.emplace_back(), contents_parts, split.header_);
      if (!read.ok()) return read;
    } else {
      if (!reader.Skip(*tag)) return Malformed(position);
      if (reader.position() - position > kMaxHeaderBytes - split.header_.size()) {
        return HeaderTooLong();
      }
      AppendFrom(reader, slice, offset, position, split.header_);
    }
    if (split.header_.size() > kMaxHeaderBytes) return HeaderTooLong();
  }
  return split;
}

grpc::ByteBuffer JoinChunks(const google::protobuf::MessageLite& header,
                            std::vector<OutgoingChunk> chunks) {
  Joiner joiner(header);
  for (OutgoingChunk& chunk : chunks) {
    std::string fields;
    if (chunk.tensor_index != 0) {
      AppendTag(fields, kChunkTensorIndexField, kVarint);
      AppendVarint(fields, chunk.tensor_index);
    }
    if (chunk.offset != 0) {
      AppendTag(fields, kChunkOffsetField, kVarint);
      AppendVarint(fields, chunk.offset);
    }
    AppendTag(fields, kPayloadField, kLengthDelimited);
    AppendVarint(fields, chunk.data.size());

    AppendTag(joiner.pending(), kPayloadField, kLengthDelimited);
    AppendVarint(joiner.pending(), fields.size() + chunk.data.size());
    joiner.pending() += fields;
    joiner.Append(std::move(chunk.data));
  }
  return joiner.Finish();
}

grpc::ByteBuffer JoinBytes(const google::protobuf::MessageLite& header, uint32_t field,
                           std::vector<grpc::Slice> contents, uint32_t outer_field) {
  std::string tag;
  AppendTag(tag, field, kLengthDelimited);
  std::vector<std::string> prefixes(contents.size(), tag);
  uint64_t bytes = header.ByteSizeLong();
  for (size_t i = 0; i < contents.size(); ++i) {
    AppendVarint(prefixes[i], contents[i].size());
    bytes += prefixes[i].size() + contents[i].size();
  }
  std::string outer;
  if (outer_field != 0) {
    AppendTag(outer, outer_field, kLengthDelimited);
    AppendVarint(outer, bytes);
  }
  Joiner joiner(header, std::move(outer));
  for (size_t i = 0; i < contents.size(); ++i) {
    joiner.pending() += prefixes[i];
    joiner.Append(std::move(contents[i]));
  }
  return joiner.Finish();
}

grpc::ByteBuffer JoinParts(const google::protobuf::MessageLite& header, uint32_t field,
                           std::vector<std::vector<grpc::Slice>> contents) {
  Joiner joiner(header);
  for (std::vector<grpc::Slice>& parts : contents) {
    uint64_t bytes = 0;
    for (const grpc::Slice& part : parts) bytes += part.size();
    AppendTag(joiner.pending(), field, kLengthDelimited);
    AppendVarint(joiner.pending(), bytes);
    for (grpc::Slice& part : parts) joiner.Append(std::move(part));
  }
  return joiner.Finish();
}

}  // namespace opmill
