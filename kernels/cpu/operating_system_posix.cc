#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "kernels/cpu/operating_system.h"

namespace opmill {
namespace {

uint32_t ByAffinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return static_cast<uint32_t>(CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

// The processors of the container's quota, rounded up; 0 if there is no quota. Version 2 of control
// groups has one file with "max 100000" or "200000 100000", version 1 has two files.
uint32_t ByQuota() {
  double quota = 0;
  double period = 0;
  std::ifstream both("/sys/fs/cgroup/cpu.max");
  if (!(both >> quota >> period)) {
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota;
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  }
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<uint32_t>(std::ceil(quota / period));
}

}  // namespace

uint32_t UsableProcessors() {
  const uint32_t quota = ByQuota();
  const uint32_t allowed = ByAffinity();
  return std::max(1u, quota == 0 ? allowed : std::min(allowed, quota));
}

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

absl::Duration ThreadTime() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

std::byte* MapPages(uint64_t size_bytes) {
  // Maps one unit more, and unmaps what is before and after the aligned part.
  const uint64_t mapped_bytes = size_bytes + kPageUnit;
  void* mapped =
      mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(mapped);
  const uint64_t before = (kPageUnit - reinterpret_cast<uintptr_t>(begin) % kPageUnit) % kPageUnit;
  if (before > 0) munmap(begin, before);
  if (before < kPageUnit) munmap(begin + before + size_bytes, kPageUnit - before);
#ifdef MADV_HUGEPAGE
  madvise(begin + before, size_bytes, MADV_HUGEPAGE);
#endif
  return begin + before;
}

void UnmapPages(std::byte* pages, uint64_t size_bytes) { munmap(pages, size_bytes); }

}  // namespace opmill
