#include <windows.h>

#include <cstdint>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/regular_file.h"
#include "kernels/base/system_error.h"
#include "kernels/base/utf8_path.h"

namespace opmill {
namespace {

absl::Status NotReadable(absl::string_view subject) {
  const auto error = static_cast<int>(GetLastError());
  return SystemError(absl::StrCat(subject, " cannot be read"), error);
}

}  // namespace

absl::StatusOr<std::string> ReadRegularFile(const std::string& path, size_t most_bytes,
                                            absl::string_view subject) {
  const HANDLE file = CreateFileW(PathOf(path).c_str(), GENERIC_READ,
                                  FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                  OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) return NotReadable(subject);
  const absl::Cleanup close_file = [file] { CloseHandle(file); };
  if (GetFileType(file) != FILE_TYPE_DISK) {
    return absl::InvalidArgumentError(absl::StrCat(subject, " is not a regular file."));
  }
  LARGE_INTEGER size = {};
  if (!GetFileSizeEx(file, &size)) return NotReadable(subject);
  if (static_cast<uint64_t>(size.QuadPart) > most_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(subject, " has ", size.QuadPart, " bytes; the limit is ", most_bytes, "."));
  }
  std::string content(static_cast<size_t>(size.QuadPart), '\0');
  DWORD count = 0;  // less if it was truncated meanwhile; the limits of callers fit a DWORD
  if (!ReadFile(file, content.data(), static_cast<DWORD>(content.size()), &count, nullptr)) {
    return NotReadable(subject);
  }
  content.resize(count);
  return content;
}

}  // namespace opmill
