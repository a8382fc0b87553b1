// --flagfile=FILE[,FILE...]: UTF-8 files with one flag per line.
#ifndef OPMILL_SERVER_CONFIG_FLAG_FILES_H_
#define OPMILL_SERVER_CONFIG_FLAG_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace opmill {

// Replaces each --flagfile argument by the flags in its files. A file may name other files. Abseil
// has the same feature, but on Windows it interprets file names in the current code page.
absl::StatusOr<std::vector<std::string>> WithFlagFiles(const std::vector<std::string>& arguments);

}  // namespace opmill

#endif  // OPMILL_SERVER_CONFIG_FLAG_FILES_H_
