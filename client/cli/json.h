// Prints protobuf messages as JSON.
#ifndef OPMILL_CLIENT_CLI_JSON_H_
#define OPMILL_CLIENT_CLI_JSON_H_

#include <string>

#include "google/protobuf/message.h"

namespace opmill {

// Uses the field names of the .proto files, and includes fields with default values.
std::string JsonOf(const google::protobuf::Message& message);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_JSON_H_
