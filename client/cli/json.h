// Messages as this program prints them.
#ifndef OPMILL_CLIENT_CLI_JSON_H_
#define OPMILL_CLIENT_CLI_JSON_H_

#include <string>

#include "google/protobuf/message.h"

namespace opmill {

// With the contract's names of fields, those of value zero too.
std::string JsonOf(const google::protobuf::Message& message);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_JSON_H_
