// JSON as this program prints it.
#ifndef OPMILL_CLIENT_CLI_JSON_H_
#define OPMILL_CLIENT_CLI_JSON_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace opmill {

// With the contract's names of fields, those of value zero too.
std::string JsonOf(const google::protobuf::Message& message);
// In quotes.
std::string JsonString(absl::string_view text);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_JSON_H_
