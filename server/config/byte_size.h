// Sizes as text: 1048576, 64MiB, 1.5GiB, 500MB.
#ifndef OPMILL_SERVER_CONFIG_BYTE_SIZE_H_
#define OPMILL_SERVER_CONFIG_BYTE_SIZE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace opmill {

// The type of a flag that holds a number of bytes.
struct ByteSize {
  uint64_t bytes = 0;
};

// A number with an optional unit: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of
// 1024), in either case. Fractions of a byte are truncated.
bool AbslParseFlag(absl::string_view text, ByteSize* size, std::string* error);
// Exact, as a whole number of the largest possible unit.
std::string AbslUnparseFlag(ByteSize size);

// For messages: as above, followed by a rounded size if it has many digits.
std::string FormatBytes(uint64_t bytes);

}  // namespace opmill

#endif  // OPMILL_SERVER_CONFIG_BYTE_SIZE_H_
