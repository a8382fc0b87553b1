#include <windows.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>

#include "kernels/cpu/host.h"

namespace opmill {

// The threads of a job object's rate limit are not seen here: its CPU rate is a share of time.
uint32_t UsableProcessors() {
  DWORD_PTR process = 0;
  DWORD_PTR system = 0;
  uint32_t allowed = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &process, &system) != 0) {
    for (; process != 0; process &= process - 1) ++allowed;
  }
  return std::max(1u, allowed != 0 ? allowed : std::thread::hardware_concurrency());
}

std::string ProcessorName() {
  char name[256] = {};
  DWORD size = sizeof(name) - 1;
  const LSTATUS status =
      RegGetValueA(HKEY_LOCAL_MACHINE, "HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0",
                   "ProcessorNameString", RRF_RT_REG_SZ, nullptr, name, &size);
  return status == ERROR_SUCCESS ? name : "CPU";
}

std::byte* MapPages(uint64_t size_bytes) {
  return static_cast<std::byte*>(
      VirtualAlloc(nullptr, size_bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

void UnmapPages(std::byte* pages, uint64_t /*size_bytes*/) { VirtualFree(pages, 0, MEM_RELEASE); }

}  // namespace opmill
