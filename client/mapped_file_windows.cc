#include <windows.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "client/mapped_file.h"
#include "kernels/base/system_error.h"
#include "kernels/base/utf8_path.h"

namespace opmill {
namespace {

absl::Status LastError(const std::string& path, const char* what) {
  const auto error = static_cast<int>(GetLastError());
  return SystemError(absl::StrCat(path, " cannot be ", what), error);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  const HANDLE file = CreateFileW(PathOf(path).c_str(), GENERIC_READ, FILE_SHARE_READ, nullptr,
                                  OPEN_EXISTING, FILE_FLAG_SEQUENTIAL_SCAN, nullptr);
  if (file == INVALID_HANDLE_VALUE) return LastError(path, "opened");
  const absl::Cleanup close_file = [file] { CloseHandle(file); };
  LARGE_INTEGER size = {};
  if (!GetFileSizeEx(file, &size)) return LastError(path, "examined");
  const void* data = nullptr;
  if (size.QuadPart > 0) {
    const HANDLE mapping = CreateFileMappingW(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
    if (mapping == nullptr) return LastError(path, "mapped");
    data = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
    const absl::Status failure = data == nullptr ? LastError(path, "mapped") : absl::OkStatus();
    CloseHandle(mapping);  // the view keeps it open
    if (!failure.ok()) return failure;
  }
  return std::shared_ptr<const MappedFile>(
      new MappedFile(static_cast<const std::byte*>(data), static_cast<size_t>(size.QuadPart)));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) UnmapViewOfFile(data_);
}

}  // namespace opmill
