#include <windows.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <thread>

#include "kernels/base/rounding.h"
#include "kernels/base/steady_time.h"
#include "kernels/cpu/operating_system.h"

namespace opmill {
namespace {

// A mask covers the 64 processors of one group. Since Windows 11 and Server 2022, a process without
// a mask may use all groups.
uint32_t ByAffinity() {
  USHORT groups[64] = {};
  USHORT group_count = std::size(groups);
  uint32_t allowed = 0;
  if (GetProcessGroupAffinity(GetCurrentProcess(), &group_count, groups) && group_count > 1) {
    for (USHORT i = 0; i < group_count; ++i) allowed += GetActiveProcessorCount(groups[i]);
    return allowed;
  }
  DWORD_PTR process = 0;
  DWORD_PTR system = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &process, &system)) {
    for (; process != 0; process &= process - 1) ++allowed;
  }
  return allowed != 0 ? allowed : std::thread::hardware_concurrency();
}

// The processors of the container's quota, rounded up; 0 if there is no quota. A container is a
// job, whose quota is a share of the time of all processors, in hundredths of a percent.
uint32_t ByQuota() {
  JOBOBJECT_CPU_RATE_CONTROL_INFORMATION rate = {};
  constexpr DWORD kCapped =
      JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
  if (!QueryInformationJobObject(nullptr, JobObjectCpuRateControlInformation, &rate, sizeof(rate),
                                 nullptr) ||
      (rate.ControlFlags & kCapped) != kCapped) {
    return 0;
  }
  const uint64_t processors = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
  return static_cast<uint32_t>(CeilDiv(processors * rate.CpuRate, 10'000));
}

}  // namespace

uint32_t UsableProcessors() {
  const uint32_t quota = ByQuota();
  const uint32_t allowed = ByAffinity();
  return std::max(1u, quota == 0 ? allowed : std::min(allowed, quota));
}

std::string ProcessorName() {
  char name[256] = {};
  DWORD size = sizeof(name) - 1;
  const LSTATUS status =
      RegGetValueA(HKEY_LOCAL_MACHINE, "HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0",
                   "ProcessorNameString", RRF_RT_REG_SZ, nullptr, name, &size);
  return status == ERROR_SUCCESS ? name : "CPU";
}

absl::Duration ThreadTime() { return SteadyNow() - absl::UnixEpoch(); }

std::byte* MapPages(uint64_t size_bytes) {
  return static_cast<std::byte*>(
      VirtualAlloc(nullptr, size_bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

void UnmapPages(std::byte* pages, uint64_t /*size_bytes*/) { VirtualFree(pages, 0, MEM_RELEASE); }

}  // namespace opmill
