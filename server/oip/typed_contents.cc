#include "server/oip/typed_contents.h"

#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "inference/grpc_service.pb.h"
#include "kernels/base/errors.h"
#include "proto/wire_reader.h"
#include "server/models/data_types.h"

namespace opmill::oip {
namespace {

using Contents = inference::InferTensorContents;

constexpr size_t kPieceBytes = 4096;

// The field that holds the elements of a type; 0 if there is none.
uint32_t FieldFor(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return Contents::kFp32ContentsFieldNumber;
    case DataType::kInt64:
      return Contents::kInt64ContentsFieldNumber;
    case DataType::kInt32:
    case DataType::kInt16:
    case DataType::kInt8:
      return Contents::kIntContentsFieldNumber;
    case DataType::kUint64:
      return Contents::kUint64ContentsFieldNumber;
    case DataType::kUint32:
    case DataType::kUint16:
    case DataType::kUint8:
      return Contents::kUintContentsFieldNumber;
    default:
      return 0;
  }
}

std::string NameOfField(uint32_t number) {
  const auto* const field = Contents::descriptor()->FindFieldByNumber(static_cast<int>(number));
  return field == nullptr ? absl::StrCat("field ", number) : std::string(field->name());
}

// As protobuf reads it: int32 and uint32 drop the upper bits.
std::optional<uint64_t> ReadElement(WireReader& reader, DataType type) {
  if (type == DataType::kFloat32) {
    if (reader.remaining() < sizeof(uint32_t)) return std::nullopt;
    uint32_t bits = 0;
    reader.ReadRaw(sizeof(bits)).CopyTo(reinterpret_cast<std::byte*>(&bits));
    return bits;
  }
  const std::optional<uint64_t> varint = reader.ReadVarint();
  if (!varint || ElementBytes(type) == sizeof(uint64_t)) return varint;
  return static_cast<uint32_t>(*varint);
}

bool InRange(uint64_t value, DataType type) {
  const uint32_t bits = 8 * ElementBytes(type);
  if (bits >= 32) return true;
  if (!IsSigned(type)) return value >> bits == 0;
  const int64_t signed_value = static_cast<int32_t>(static_cast<uint32_t>(value));
  const int64_t limit = int64_t{1} << (bits - 1);
  return signed_value >= -limit && signed_value < limit;
}

// Calls visit(element) until it returns an error.
template <typename Visit>
absl::Status ForEachElement(const std::vector<Payload>& contents, DataType type,
                            const std::string& field, const Visit& visit) {
  const auto malformed = [&] {
    return InvalidField(field, absl::StrCat(field, " is not an InferTensorContents message."));
  };
  const uint32_t expected = FieldFor(type);
  const uint32_t wire_type = type == DataType::kFloat32 ? kFixed32 : kVarint;
  for (const Payload& message : contents) {
    WireReader reader(message);
    while (reader.remaining() > 0) {
      const std::optional<WireTag> tag = reader.ReadTag();
      if (!tag) return malformed();
      if (tag->field != expected) {
        return InvalidField(
            field, absl::StrCat(field, " has ", NameOfField(tag->field), ", but the elements of ",
                                NameOf(type), " are in ", NameOfField(expected), "."));
      }
      if (tag->type == wire_type) {
        const std::optional<uint64_t> element = ReadElement(reader, type);
        if (!element) return malformed();
        RETURN_IF_ERROR(visit(*element));
        continue;
      }
      if (tag->type != kLengthDelimited) return malformed();
      const std::optional<Payload> packed = reader.ReadBytes();
      if (!packed) return malformed();
      WireReader elements(*packed);
      while (elements.remaining() > 0) {
        const std::optional<uint64_t> element = ReadElement(elements, type);
        if (!element) return malformed();
        RETURN_IF_ERROR(visit(*element));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckContents(const std::vector<Payload>& contents, const TensorDesc& tensor,
                           const std::string& field) {
  const DataType type = tensor.data_type;
  if (FieldFor(type) == 0) {
    return InvalidField(field, absl::StrCat(field, " cannot hold elements of ", NameOf(type),
                                            "; raw_input_contents can."));
  }
  const uint64_t expected = ElementCount(tensor);
  uint64_t count = 0;
  RETURN_IF_ERROR(ForEachElement(contents, type, field, [&](uint64_t element) -> absl::Status {
    if (!InRange(element, type)) {
      const int64_t value = IsSigned(type) ? static_cast<int32_t>(static_cast<uint32_t>(element))
                                           : static_cast<int64_t>(element);
      return InvalidField(field, absl::StrCat("Element ", count, " of ", field, " (", value,
                                              ") is out of the range of ", NameOf(type), "."));
    }
    ++count;
    return absl::OkStatus();
  }));
  if (count == expected) return absl::OkStatus();
  return InvalidField(
      field, absl::StrCat(field, " has ", count, " elements; the shape has ", expected, "."));
}

void ConvertContents(const std::vector<Payload>& contents, const TensorDesc& tensor,
                     const std::function<void(absl::Span<const std::byte>)>& write) {
  const size_t bytes = ElementBytes(tensor.data_type);
  std::byte piece[kPieceBytes];
  size_t size = 0;
  const auto flush = [&] {
    if (size > 0) write(absl::MakeConstSpan(piece, size));
    size = 0;
  };
  static_cast<void>(ForEachElement(contents, tensor.data_type, "", [&](uint64_t element) {
    if (size + bytes > kPieceBytes) flush();
    std::memcpy(piece + size, &element, bytes);  // little endian, as tensors are
    size += bytes;
    return absl::OkStatus();
  }));
  flush();
}

}  // namespace opmill::oip
