// Text as JSON holds it.
#ifndef OPMILL_KERNELS_BASE_JSON_TEXT_H_
#define OPMILL_KERNELS_BASE_JSON_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace opmill {

// In quotes. JSON is UTF-8: a byte that is none, of a file's name say, becomes U+FFFD.
std::string JsonString(absl::string_view text);
void AppendJsonString(std::string& json, absl::string_view text);

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_JSON_TEXT_H_
