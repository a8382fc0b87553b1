// Conversion between UTF-8 and the UTF-16 of Windows. Invalid input becomes U+FFFD.
#ifndef OPMILL_KERNELS_BASE_UTF16_H_
#define OPMILL_KERNELS_BASE_UTF16_H_

#include <string>

#include "absl/strings/string_view.h"

namespace opmill {

std::wstring Utf16(absl::string_view text);
std::string Utf8(const wchar_t* text);  // null-terminated

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_UTF16_H_
