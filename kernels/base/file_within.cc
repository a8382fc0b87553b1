#include "kernels/base/file_within.h"

#include <algorithm>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/utf8_path.h"

namespace opmill {

namespace fs = std::filesystem;

absl::StatusOr<fs::path> FileWithin(const fs::path& folder, const std::string& location,
                                    absl::string_view subject, absl::string_view folder_name) {
  const fs::path relative = PathOf(location);
  const bool climbs = std::any_of(relative.begin(), relative.end(),
                                  [](const fs::path& part) { return part == ".."; });
  if (relative.empty() || relative.has_root_path() || climbs ||
      location.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(subject, " is not a relative path within ", folder_name, "."));
  }
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  fs::path path = error ? fs::path() : fs::canonical(root / relative, error);
  if (error || !fs::is_regular_file(path, error)) {
    return absl::NotFoundError(
        absl::StrCat(subject, " is not the name of a regular file in ", folder_name, "."));
  }
  const auto [end, inside] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  if (end != root.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(subject, " is a link out of ", folder_name, "."));
  }
  return path;
}

}  // namespace opmill
