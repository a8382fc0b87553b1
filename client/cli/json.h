// JSON of protobuf messages.
#ifndef OPMILL_CLIENT_CLI_JSON_H_
#define OPMILL_CLIENT_CLI_JSON_H_

#include <string>

#include "google/protobuf/message.h"

namespace opmill {

// With the field names of the contract, including fields with default values.
std::string JsonOf(const google::protobuf::Message& message);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_JSON_H_
