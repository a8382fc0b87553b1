#include "client/cli/json.h"

#include "absl/strings/str_format.h"
#include "google/protobuf/stubs/common.h"
#include "google/protobuf/util/json_util.h"

namespace opmill {

std::string JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
#if GOOGLE_PROTOBUF_VERSION >= 5026000
  options.always_print_fields_with_no_presence = true;
#else
  options.always_print_primitive_fields = true;
#endif
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  // Fails only for messages with Any, of which there is none here.
  return status.ok() ? json : "null";
}

std::string JsonString(absl::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&json, "\\u%04x", static_cast<int>(c));
    } else {
      json += c;
    }
  }
  return json + '"';
}

}  // namespace opmill
