// --flagfile=FILE[,FILE...]: files of flags, one flag per line, in UTF-8.
#ifndef OPMILL_SERVER_FLAGS_FLAG_FILES_H_
#define OPMILL_SERVER_FLAGS_FLAG_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace opmill {

// Replaces each --flagfile by the flags in its files, which may name further files.
// docs/architecture.md explains why abseil's own --flagfile is not used.
absl::StatusOr<std::vector<std::string>> WithFlagFiles(const std::vector<std::string>& arguments);

}  // namespace opmill

#endif  // OPMILL_SERVER_FLAGS_FLAG_FILES_H_
