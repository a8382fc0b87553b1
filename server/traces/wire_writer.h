// Writes fields of protobuf messages without the messages: for the many small ones of a span, these
// would take a dozen times as long.
#ifndef OPMILL_SERVER_TRACES_WIRE_WRITER_H_
#define OPMILL_SERVER_TRACES_WIRE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace opmill {

class WireWriter {
 public:
  // The bytes of a field with so many bytes of text.
  static size_t SizeOf(int field, size_t bytes) {
    return VarintSize(Tag(field, kLengthDelimited)) + VarintSize(bytes) + bytes;
  }

  // A text or a message.
  void Add(int field, absl::string_view bytes) {
    Begin(field, bytes.size());
    text_.append(bytes.data(), bytes.size());
  }
  // The fields of a message follow, with so many bytes.
  void Begin(int field, size_t bytes) {
    AddVarint(Tag(field, kLengthDelimited));
    AddVarint(bytes);
  }
  void AddNumber(int field, uint64_t value) {
    AddVarint(Tag(field, kVarint));
    AddVarint(value);
  }
  void AddFixed64(int field, uint64_t value) { AddFixed(field, kFixed64, 8, value); }
  void AddFixed32(int field, uint32_t value) { AddFixed(field, kFixed32, 4, value); }

  const std::string& text() const { return text_; }
  void Clear() { text_.clear(); }  // keeps the memory

 private:
  static constexpr uint32_t kVarint = 0;
  static constexpr uint32_t kFixed64 = 1;
  static constexpr uint32_t kLengthDelimited = 2;
  static constexpr uint32_t kFixed32 = 5;

  static uint32_t Tag(int field, uint32_t type) { return static_cast<uint32_t>(field) << 3 | type; }
  static size_t VarintSize(uint64_t value) {
    size_t size = 1;
    for (; value >= 0x80; value >>= 7) ++size;
    return size;
  }
  void AddVarint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  void AddFixed(int field, uint32_t type, int bytes, uint64_t value) {
    AddVarint(Tag(field, type));
    for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(value >> (8 * i));
  }

  std::string text_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_TRACES_WIRE_WRITER_H_
