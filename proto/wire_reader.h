// Reads protobuf's wire format from slices.
#ifndef OPMILL_PROTO_WIRE_READER_H_
#define OPMILL_PROTO_WIRE_READER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "grpcpp/support/slice.h"
#include "proto/payload.h"

namespace opmill {

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kLengthDelimited = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

struct WireTag {
  uint32_t field = 0;
  uint32_t type = 0;
};

// Reads forward through slices as if they were one string. What it returns is empty or false where
// the bytes end too early or are malformed.
class WireReader {
 public:
  explicit WireReader(const std::vector<grpc::Slice>& slices) : slices_(slices) {
    for (const grpc::Slice& slice : slices) remaining_ += slice.size();
    SkipEmptySlices();
  }
  explicit WireReader(const Payload& payload)
      : slices_(*payload.slices_),
        slice_(payload.slice_),
        offset_(payload.offset_),
        remaining_(payload.size_) {}

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
  std::optional<WireTag> ReadTag() {
    const std::optional<uint64_t> varint = ReadVarint(5);
    if (!varint) return std::nullopt;
    const uint32_t tag = static_cast<uint32_t>(*varint);
    if (tag < 8) return std::nullopt;
    return WireTag{tag >> 3, tag & 7};
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
    return ReadRaw(static_cast<size_t>(*size));
  }

  // `size` must not exceed what remains.
  Payload ReadRaw(size_t size) {
    const Payload payload(&slices_, slice_, offset_, size);
    Advance(size);
    return payload;
  }

  bool Skip(WireTag tag, int depth = 0) {
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
        while (const std::optional<WireTag> inner = ReadTag()) {
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
  static constexpr int kMaxGroupDepth = 32;

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

}  // namespace opmill

#endif  // OPMILL_PROTO_WIRE_READER_H_
