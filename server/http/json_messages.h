// The small messages of the Open Inference Protocol as JSON, by protobuf's reflection. protobuf's
// own JSON does not have the protocol's form: it writes 64-bit integers as strings.
#ifndef OPMILL_SERVER_HTTP_JSON_MESSAGES_H_
#define OPMILL_SERVER_HTTP_JSON_MESSAGES_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "server/http/json_reader.h"

namespace opmill::json {

// All fields with their names in the .proto file; messages only if they are set.
void AppendMessage(const google::protobuf::Message& message, std::string& json);
// The value of one field.
void AppendField(const google::protobuf::Message& message,
                 const google::protobuf::FieldDescriptor& field, std::string& json);

// Sets the fields of `message` that the JSON gives. Maps are those of parameters.
absl::Status ReadMessage(element object, google::protobuf::Message& message);

// Reads an InferParameter or ModelRepositoryParameter.
absl::Status ReadParameter(const std::string& path, absl::string_view name, element value,
                           google::protobuf::Message& parameter);

}  // namespace opmill::json

#endif  // OPMILL_SERVER_HTTP_JSON_MESSAGES_H_
