#include <windows.h>

#include "server/host/process_usage.h"
// clang-format off: it needs windows.h before it
#include <psapi.h>
// clang-format on

namespace opmill {
namespace {

absl::Duration ToDuration(const FILETIME& time) {
  ULARGE_INTEGER value;
  value.LowPart = time.dwLowDateTime;
  value.HighPart = time.dwHighDateTime;
  return absl::Nanoseconds(100) * static_cast<int64_t>(value.QuadPart);
}

}  // namespace

uint64_t ReadResidentBytes() {
  PROCESS_MEMORY_COUNTERS memory = {};
  const BOOL read = K32GetProcessMemoryInfo(GetCurrentProcess(), &memory, sizeof(memory));
  return read ? memory.WorkingSetSize : 0;
}

ProcessUsage ReadProcessUsage() {
  ProcessUsage usage;
  usage.resident_bytes = ReadResidentBytes();
  const HANDLE self = GetCurrentProcess();
  DWORD handles = 0;
  if (GetProcessHandleCount(self, &handles)) usage.open_handles = handles;
  FILETIME created, exited, kernel, user;
  if (GetProcessTimes(self, &created, &exited, &kernel, &user)) {
    usage.processor_time = ToDuration(kernel) + ToDuration(user);
  }
  return usage;
}

}  // namespace opmill
