// Text of unknown origin, such as names in files, as part of a sentence.
#ifndef OPMILL_KERNELS_BASE_EXCERPT_H_
#define OPMILL_KERNELS_BASE_EXCERPT_H_

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "kernels/base/utf8.h"

namespace opmill {

// At most the first `max_bytes` bytes, without a part of a character of UTF-8.
inline absl::string_view BeginningOf(absl::string_view text, size_t max_bytes) {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  size_t end = std::min(text.size(), max_bytes);
  while (end < text.size() && end > 0 && continues(text[end])) --end;
  return text.substr(0, end);
}

// The same. Escaped, so that no terminal takes it for a command. UTF-8 remains UTF-8; of other
// text, every byte that is not ASCII is escaped.
inline std::string Excerpt(absl::string_view text, size_t max_bytes = 80) {
  const absl::string_view part = BeginningOf(text, max_bytes);
  return (IsUtf8(part) ? absl::Utf8SafeCEscape(part) : absl::CEscape(part)) +
         (part.size() < text.size() ? "..." : "");
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_EXCERPT_H_
