// Builds protobuf's wire format by hand.
#ifndef OPMILL_TESTS_SERVER_WIRE_BYTES_H_
#define OPMILL_TESTS_SERVER_WIRE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/conformance/random.h"

namespace opmill {

inline std::string RandomBytes(Random& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Bits());
  return bytes;
}

inline std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

inline std::string Tag(uint32_t field, uint32_t wire_type) {
  return Varint(uint64_t{field} << 3 | wire_type);
}

inline std::string Delimited(uint32_t field, absl::string_view bytes) {
  return Tag(field, 2) + Varint(bytes.size()) + std::string(bytes);
}

}  // namespace opmill

#endif  // OPMILL_TESTS_SERVER_WIRE_BYTES_H_
