// Files that lie in a folder, by names that others choose.
#ifndef OPMILL_KERNELS_BASE_FILE_WITHIN_H_
#define OPMILL_KERNELS_BASE_FILE_WITHIN_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace opmill {

// A regular file in `folder`, or below, also after links have been followed. `location` is UTF-8.
// Errors are sentences about `subject`, which names the location, and `folder_name`: NotFound if
// there is no such file, InvalidArgument if it would be outside.
absl::StatusOr<std::filesystem::path> FileWithin(const std::filesystem::path& folder,
                                                 const std::string& location,
                                                 absl::string_view subject,
                                                 absl::string_view folder_name);

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_FILE_WITHIN_H_
