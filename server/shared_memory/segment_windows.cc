#include <windows.h>

#include <string>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/utf16.h"
#include "server/shared_memory/segment.h"

namespace opmill {
namespace {

absl::Status LastError(const char* function) {
  const DWORD error = GetLastError();
  return absl::UnknownError(
      absl::StrCat(function, ": ", std::system_category().message(static_cast<int>(error))));
}

absl::Status EndsAt(uint64_t offset) {
  return absl::OutOfRangeError(absl::StrCat("it ends at byte ", offset));
}

HANDLE OpenMapping(const std::string& name) {
  return OpenFileMappingW(FILE_MAP_READ | FILE_MAP_WRITE, FALSE, Utf16(name).c_str());
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Segment>> Segment::Open(const std::string& name,
                                                             const SegmentOwners& /*owners*/) {
  HANDLE mapping = OpenMapping(name);
  // A service runs in another session than its callers, and shares only this namespace with them.
  if (mapping == nullptr) mapping = OpenMapping(absl::StrCat("Global\\", name));
  if (mapping == nullptr) return LastError("OpenFileMapping");
  const absl::Cleanup close_mapping = [mapping] { CloseHandle(mapping); };  // the view keeps it
  void* const view = MapViewOfFile(mapping, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, 0);
  if (view == nullptr) return LastError("MapViewOfFile");
  MEMORY_BASIC_INFORMATION info = {};
  const bool is_known = VirtualQuery(view, &info, sizeof(info)) == sizeof(info);
  // Without its reserved part, which has no memory yet.
  const uint64_t bytes = is_known && info.State == MEM_COMMIT ? info.RegionSize : 0;
  return std::shared_ptr<const Segment>(new Segment(static_cast<std::byte*>(view), bytes));
}

Segment::~Segment() { UnmapViewOfFile(view_); }

absl::StatusOr<uint64_t> Segment::SizeBytes() const { return bytes_; }

absl::Status Segment::Read(uint64_t offset, absl::Span<std::byte> to) const {
  if (offset > bytes_ || to.size() > bytes_ - offset) return EndsAt(bytes_);
  if (ReadProcessMemory(GetCurrentProcess(), view_ + offset, to.data(), to.size(), nullptr)) {
    return absl::OkStatus();
  }
  return LastError("ReadProcessMemory");
}

absl::Status Segment::Write(uint64_t offset, absl::Span<const std::byte> from) const {
  if (offset > bytes_ || from.size() > bytes_ - offset) return EndsAt(bytes_);
  if (WriteProcessMemory(GetCurrentProcess(), view_ + offset, from.data(), from.size(), nullptr)) {
    return absl::OkStatus();
  }
  return LastError("WriteProcessMemory");
}

}  // namespace opmill
