#include "kernels/base/json_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "kernels/base/utf8.h"

namespace opmill {
namespace {

// The length of the characters at the start of the text that are written as they are. Almost all
// texts have no others.
size_t PlainLength(absl::string_view text) {
  const auto end = std::find_if(text.begin(), text.end(), [](char c) {
    return c < 0x20 || c == '"' || c == '\\' || static_cast<uint8_t>(c) >= 0x7F;
  });
  return static_cast<size_t>(end - text.begin());
}

// The number of a control character of `length` bytes, or 0x100: U+0000 to U+001F, and those that
// JSON allows but terminals obey, U+007F to U+009F.
uint32_t ControlCharacter(absl::string_view text, size_t length) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (length == 1 && (first < 0x20 || first == 0x7F)) return first;
  const bool is_c1 = length == 2 && first == 0xC2 && static_cast<uint8_t>(text[1]) < 0xA0;
  return is_c1 ? static_cast<uint8_t>(text[1]) : 0x100;
}

}  // namespace

std::string JsonString(absl::string_view text) {
  std::string json;
  AppendJsonString(json, text);
  return json;
}

void AppendJsonString(std::string& json, absl::string_view text) {
  json += '"';
  while (true) {
    const size_t plain = PlainLength(text);
    json.append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const char first = text[0];
    const size_t length = Utf8CharacterLength(text);
    if (first == '"' || first == '\\') {
      json += '\\';
      json += first;
    } else if (length == 0) {
      json += "\xEF\xBF\xBD";
    } else if (const uint32_t control = ControlCharacter(text, length); control < 0x100) {
      absl::StrAppendFormat(&json, "\\u%04x", control);
    } else {
      json.append(text.data(), length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  json += '"';
}

}  // namespace opmill
