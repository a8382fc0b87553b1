// Text of unknown origin, such as names in files, as part of a sentence.
#ifndef OPMILL_KERNELS_BASE_EXCERPT_H_
#define OPMILL_KERNELS_BASE_EXCERPT_H_

#include <cstddef>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace opmill {

// At most the first `max_bytes` bytes. Escaped, so that no terminal takes it for a command.
inline std::string Excerpt(absl::string_view text, size_t max_bytes = 80) {
  return absl::Utf8SafeCEscape(text.substr(0, max_bytes)) + (text.size() > max_bytes ? "..." : "");
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_EXCERPT_H_
