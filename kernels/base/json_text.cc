#include "kernels/base/json_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace opmill {
namespace {

// The length of the characters at the start of the text that JSON writes as they are. Almost all
// texts have no others.
size_t PlainLength(absl::string_view text) {
  const auto end = std::find_if(text.begin(), text.end(), [](char c) {
    return c < 0x20 || c == '"' || c == '\\' || static_cast<uint8_t>(c) >= 0x80;
  });
  return static_cast<size_t>(end - text.begin());
}

// The length of the first character in bytes; 0 if it is not valid UTF-8.
size_t CharacterLength(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong, half of a surrogate pair, or beyond the last code point.
  const bool overlong = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xF0 && byte(1) < 0x90);
  const bool surrogate = byte(0) == 0xED && byte(1) >= 0xA0;
  const bool beyond = byte(0) == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
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
    const size_t length = CharacterLength(text);
    if (first == '"' || first == '\\') {
      json += '\\';
      json += first;
    } else if (length == 1 && first < 0x20) {
      absl::StrAppendFormat(&json, "\\u%04x", first);
    } else if (length == 0) {
      json += "\xEF\xBF\xBD";
    } else {
      json.append(text.data(), length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  json += '"';
}

}  // namespace opmill
