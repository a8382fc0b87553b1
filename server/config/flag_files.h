// --flagfile=FILE[,FILE...]: a file of flags, one a line, in UTF-8.
#ifndef OPMILL_SERVER_CONFIG_FLAG_FILES_H_
#define OPMILL_SERVER_CONFIG_FLAG_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace opmill {

// The arguments with the flags of every file in its place; a file may name others. Abseil would
// take a file's name, on Windows, in the code page of the day.
absl::StatusOr<std::vector<std::string>> WithFlagFiles(const std::vector<std::string>& arguments);

}  // namespace opmill

#endif  // OPMILL_SERVER_CONFIG_FLAG_FILES_H_
