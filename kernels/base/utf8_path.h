// Names of files are UTF-8 in this program, regardless of the system's code page.
#ifndef OPMILL_KERNELS_BASE_UTF8_PATH_H_
#define OPMILL_KERNELS_BASE_UTF8_PATH_H_

#include <filesystem>
#include <string>

#include "absl/strings/string_view.h"

namespace opmill {

inline std::filesystem::path PathOf(absl::string_view name) {
  return std::filesystem::path(std::u8string(name.begin(), name.end()));
}

inline std::string Utf8Name(const std::filesystem::path& path) {
  const std::u8string name = path.u8string();
  return std::string(name.begin(), name.end());
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_UTF8_PATH_H_
