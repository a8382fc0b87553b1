// Validation of UTF-8.
#ifndef OPMILL_KERNELS_BASE_UTF8_H_
#define OPMILL_KERNELS_BASE_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace opmill {

// The length in bytes of the first character of a text that is not empty; 0 if it is not valid.
size_t Utf8CharacterLength(absl::string_view text);

bool IsUtf8(absl::string_view text);

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_UTF8_H_
