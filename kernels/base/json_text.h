// Strings in JSON.
#ifndef OPMILL_KERNELS_BASE_JSON_TEXT_H_
#define OPMILL_KERNELS_BASE_JSON_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace opmill {

// Quoted and escaped. Bytes that are not UTF-8, for example in names of files, become U+FFFD.
std::string JsonString(absl::string_view text);
void AppendJsonString(std::string& json, absl::string_view text);

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_JSON_TEXT_H_
