// Sizes as administrators read and write them: 1048576, 64MiB, 1.5GiB, 500MB.
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

// Parses a number with an optional unit: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB
// (powers of 1024); case does not matter. A fraction of a byte is dropped.
bool AbslParseFlag(absl::string_view text, ByteSize* size, std::string* error);
// Exact, in the largest unit that gives a whole number.
std::string AbslUnparseFlag(ByteSize size);

// For messages: as above, followed by a rounded size if the exact one has many digits.
std::string FormatBytes(uint64_t bytes);

}  // namespace opmill

#endif  // OPMILL_SERVER_CONFIG_BYTE_SIZE_H_
