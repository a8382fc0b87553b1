#include <windows.h>

#include "server/host_memory.h"

namespace opmill {

uint64_t HostMemoryBytes() {
  MEMORYSTATUSEX status = {};
  status.dwLength = sizeof(status);
  if (!GlobalMemoryStatusEx(&status)) return uint64_t{8} << 30;
  return status.ullTotalPhys;
}

}  // namespace opmill
