#include "kernels/onnx/wire_size.h"

#include <climits>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "kernels/base/errors.h"

namespace opmill::onnx {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

// Upper bounds, from protobuf 3.21.
constexpr uint64_t kMessageBytes = 256;
constexpr uint64_t kFieldBytes = 48;      // a string, or an unknown field
constexpr uint64_t kPackedByteTakes = 8;  // a varint of one byte becomes an integer
constexpr int kMaxDepth = 64;

class Walker {
 public:
  Walker(google::protobuf::io::ZeroCopyInputStream& stream, uint64_t limit_bytes)
      : in_(&stream), limit_bytes_(limit_bytes) {
    in_.SetTotalBytesLimit(INT_MAX);
  }

  absl::Status Walk(const Descriptor* type, int depth) {
    if (depth > kMaxDepth) {
      return absl::InvalidArgumentError(absl::StrCat(
          "The file is not an ONNX model that can be read: its messages are nested more than ",
          kMaxDepth, " deep."));
    }
    RETURN_IF_ERROR(Take(kMessageBytes));
    while (const uint32_t tag = in_.ReadTag()) RETURN_IF_ERROR(WalkField(tag, type, depth));
    return in_.ConsumedEntireMessage() ? absl::OkStatus() : Malformed();
  }

 private:
  absl::Status WalkField(uint32_t tag, const Descriptor* type, int depth) {
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      RETURN_IF_ERROR(Take(kFieldBytes));
      const bool is_group =
          WireFormatLite::GetTagWireType(tag) >= 3 && WireFormatLite::GetTagWireType(tag) <= 4;
      return !is_group && WireFormatLite::SkipField(&in_, tag) ? absl::OkStatus() : Malformed();
    }
    int size = 0;
    if (!in_.ReadVarintSizeAsInt(&size)) return Malformed();
    const FieldDescriptor* const field =
        type->FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    if (field != nullptr && field->type() == FieldDescriptor::TYPE_MESSAGE) {
      const auto limit = in_.PushLimit(size);
      if (in_.BytesUntilLimit() != size) return Malformed();
      RETURN_IF_ERROR(Walk(field->message_type(), depth + 1));
      in_.PopLimit(limit);
      return absl::OkStatus();
    }
    const bool is_packed = field != nullptr && field->is_packable();
    RETURN_IF_ERROR(
        Take(kFieldBytes + static_cast<uint64_t>(size) * (is_packed ? kPackedByteTakes : 1)));
    return in_.Skip(size) ? absl::OkStatus() : Malformed();
  }

  absl::Status Take(uint64_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= limit_bytes_) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("The model takes more than ", limit_bytes_, " bytes of memory."));
  }
  absl::Status Malformed() const {
    return absl::InvalidArgumentError(
        absl::StrCat("The file is not an ONNX model: it is cut off or malformed at byte ",
                     in_.CurrentPosition(), "."));
  }

  google::protobuf::io::CodedInputStream in_;
  const uint64_t limit_bytes_;
  uint64_t bytes_ = 0;
};

}  // namespace

absl::Status CheckWireSize(google::protobuf::io::ZeroCopyInputStream& stream,
                           const Descriptor& type, uint64_t limit_bytes) {
  return Walker(stream, limit_bytes).Walk(&type, 0);
}

}  // namespace opmill::onnx
