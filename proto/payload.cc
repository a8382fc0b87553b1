#include "proto/payload.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace opmill {
namespace {

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kLengthDelimited = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

constexpr uint32_t kChunkTensorIndexField = 1;
constexpr uint32_t kChunkOffsetField = 2;
constexpr int kMaxGroupDepth = 32;

struct Tag {
  uint32_t field = 0;
  uint32_t type = 0;
};

// Reads forward through slices as if they were one string. What it returns is empty or false where
// the bytes end too early or are malformed.
class Reader {
 public:
  explicit Reader(const std::vector<grpc::Slice>& slices) : slices_(slices) {
    for (const grpc::Slice& slice : slices) remaining_ += slice.size();
    SkipEmptySlices();
  }

  size_t remaining() const { return remaining_; }
  size_t position() const { return position_; }

  std::optional<uint64_t> ReadVarint(int max_bytes = 10) {
    uint64_t value = 0;
    for (int shift = 0; shift < 7 * max_bytes; shift += 7) {
      if (remaining_ == 0) return std::nullopt;
      const uint8_t byte = slices_[slice_].begin()[offset_];
      Advance(1);
      if (shift < 64) value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  // Takes what protobuf takes: five bytes, of which it drops the bits past 32.
  std::optional<Tag> ReadTag() {
    const std::optional<uint64_t> varint = ReadVarint(5);
    if (!varint) return std::nullopt;
    const uint32_t tag = static_cast<uint32_t>(*varint);
    if (tag < 8) return std::nullopt;
    return Tag{tag >> 3, tag & 7};
  }

  // Of a length-delimited field: no more than what remains.
  std::optional<uint64_t> ReadSize() {
    const std::optional<uint64_t> size = ReadVarint(5);
    if (!size || *size > remaining_) return std::nullopt;
    return size;
  }

  // The bytes of a length-delimited field, whose tag has been read. Stands behind them after.
  std::optional<Payload> ReadBytes() {
    const std::optional<uint64_t> size = ReadSize();
    if (!size) return std::nullopt;
    const Payload payload(&slices_, slice_, offset_, static_cast<size_t>(*size));
    Advance(static_cast<size_t>(*size));
    return payload;
  }

  bool Skip(Tag tag, int depth = 0) {
    switch (tag.type) {
      case kVarint:
        return ReadVarint().has_value();
      case kFixed64:
        return Consume(8);
      case kFixed32:
        return Consume(4);
      case kLengthDelimited:
        return ReadBytes().has_value();
      case kStartGroup:
        if (depth == kMaxGroupDepth) return false;
        while (const std::optional<Tag> inner = ReadTag()) {
          if (inner->type == kEndGroup) return inner->field == tag.field;
          if (!Skip(*inner, depth + 1)) return false;
        }
        return false;
      default:
        return false;
    }
  }

  Payload From(size_t start_slice, size_t start_offset, size_t start_position) const {
    return Payload(&slices_, start_slice, start_offset, position_ - start_position);
  }
  size_t slice() const { return slice_; }
  size_t offset() const { return offset_; }

 private:
  bool Consume(size_t count) {
    if (count > remaining_) return false;
    Advance(count);
    return true;
  }

  void Advance(size_t count) {
    position_ += count;
    remaining_ -= count;
    while (count > 0) {
      const size_t step = std::min(count, slices_[slice_].size() - offset_);
      offset_ += step;
      count -= step;
      SkipEmptySlices();
    }
  }

  void SkipEmptySlices() {
    while (slice_ < slices_.size() && offset_ == slices_[slice_].size()) {
      ++slice_;
      offset_ = 0;
    }
  }

  const std::vector<grpc::Slice>& slices_;
  size_t slice_ = 0;
  size_t offset_ = 0;
  size_t position_ = 0;
  size_t remaining_ = 0;
};

// As protobuf does: of a field given twice the last counts, unknown ones are passed over.
bool ReadChunk(Reader& reader, IncomingChunk& chunk) {
  const std::optional<uint64_t> size = reader.ReadSize();
  if (!size) return false;
  const size_t end = reader.position() + static_cast<size_t>(*size);
  while (reader.position() < end) {
    const std::optional<Tag> tag = reader.ReadTag();
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

absl::Status Malformed(size_t position) {
  return absl::InvalidArgumentError(absl::StrCat(
      "The message is not a protobuf message: its field at byte ", position, " cannot be read."));
}

void AppendVarint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}

void AppendTag(std::string& to, uint32_t field, WireType type) {
  AppendVarint(to, uint64_t{field} << 3 | type);
}

// Slices in the order of the wire. Short runs of bytes gather in one slice.
class Joiner {
 public:
  explicit Joiner(const google::protobuf::MessageLite& header) {
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

void Payload::CopyTo(std::byte* target) const {
  size_t left = size_;
  size_t offset = offset_;
  for (size_t i = slice_; left > 0; ++i) {
    const grpc::Slice& slice = (*slices_)[i];
    const size_t count = std::min(left, slice.size() - offset);
    std::memcpy(target, slice.begin() + offset, count);
    target += count;
    left -= count;
    offset = 0;
  }
}

absl::StatusOr<SplitMessage> SplitMessage::Split(const grpc::ByteBuffer& message,
                                                 PayloadKind kind) {
  auto bytes = std::make_unique<Bytes>();
  bytes->message = message;
  return Split(std::move(bytes), kind);
}

absl::StatusOr<SplitMessage> SplitMessage::Take(grpc::ByteBuffer& message, PayloadKind kind) {
  auto bytes = std::make_unique<Bytes>();
  bytes->message.Swap(&message);
  return Split(std::move(bytes), kind);
}

absl::StatusOr<SplitMessage> SplitMessage::Split(std::unique_ptr<Bytes> bytes, PayloadKind kind) {
  if (!bytes->message.Dump(&bytes->slices).ok()) {
    return absl::InternalError("The message's bytes cannot be read.");
  }
  SplitMessage split(std::move(bytes));
  Reader reader(split.bytes_->slices);
  while (reader.remaining() > 0) {
    const size_t slice = reader.slice();
    const size_t offset = reader.offset();
    const size_t position = reader.position();
    const std::optional<Tag> tag = reader.ReadTag();
    if (!tag) return Malformed(position);
    if (tag->field == kPayloadField && tag->type == kLengthDelimited) {
      IncomingChunk chunk;
      if (kind == PayloadKind::kChunks) {
        if (!ReadChunk(reader, chunk)) return Malformed(position);
      } else {
        const std::optional<Payload> data = reader.ReadBytes();
        if (!data) return Malformed(position);
        chunk.tensor_index = static_cast<uint32_t>(split.chunks_.size());
        chunk.data = *data;
      }
      if (split.chunks_.size() == kMaxChunksPerMessage) {
        return absl::InvalidArgumentError(absl::StrCat(
            "The message holds more than ", kMaxChunksPerMessage, " runs of tensor bytes."));
      }
      split.chunks_.push_back(chunk);
      continue;
    }
    if (!reader.Skip(*tag)) return Malformed(position);
    const Payload field = reader.From(slice, offset, position);
    const size_t header_bytes = split.header_.size();
    if (field.size() > kMaxHeaderBytes - header_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("The fields of the message that are not tensor bytes take more than ",
                       kMaxHeaderBytes, " bytes."));
    }
    split.header_.resize(header_bytes + field.size());
    field.CopyTo(reinterpret_cast<std::byte*>(split.header_.data() + header_bytes));
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

grpc::ByteBuffer JoinInputs(const google::protobuf::MessageLite& header,
                            std::vector<grpc::Slice> inputs) {
  Joiner joiner(header);
  for (grpc::Slice& input : inputs) {
    AppendTag(joiner.pending(), kPayloadField, kLengthDelimited);
    AppendVarint(joiner.pending(), input.size());
    joiner.Append(std::move(input));
  }
  return joiner.Finish();
}

}  // namespace opmill
