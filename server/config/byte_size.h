// Sizes as operators write and read them: 1048576, 64MiB, 1.5GiB, 500MB.
#ifndef OPMILL_SERVER_CONFIG_BYTE_SIZE_H_
#define OPMILL_SERVER_CONFIG_BYTE_SIZE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace opmill {

// The type of a flag that is a number of bytes.
struct ByteSize {
  uint64_t bytes = 0;
};

// A number without or with a unit: B, kB, MB, GB, TB of 1000, KiB, MiB, GiB, TiB of 1024, in either
// case. A fraction of a byte is cut off.
bool AbslParseFlag(absl::string_view text, ByteSize* size, std::string* error);
// Exact, in the largest unit of which it is a whole number.
std::string AbslUnparseFlag(ByteSize size);

// For sentences: as above, and where those are many digits, with a rounded size behind them.
std::string FormatBytes(uint64_t bytes);

}  // namespace opmill

#endif  // OPMILL_SERVER_CONFIG_BYTE_SIZE_H_
