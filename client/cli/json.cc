#include "client/cli/json.h"

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
  // Fails only for messages with Any, which are not used here.
  return status.ok() ? json : "null";
}

}  // namespace opmill
