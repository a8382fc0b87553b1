#include "kernels/cpu/operating_system.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <sched.h>
#endif

#include <cstdint>
#include <thread>

#include "gtest/gtest.h"

namespace opmill {
namespace {

// Leaves the caller, or on Windows the process, one of the processors that it has.
void KeepOneProcessor() {
#ifdef _WIN32
  DWORD_PTR process = 0;
  DWORD_PTR system = 0;
  ASSERT_TRUE(GetProcessAffinityMask(GetCurrentProcess(), &process, &system));
  ASSERT_TRUE(SetProcessAffinityMask(GetCurrentProcess(), process & (~process + 1)));
#else
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  int first = 0;
  while (!CPU_ISSET(first, &set)) ++first;
  CPU_ZERO(&set);
  CPU_SET(first, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
#endif
}

TEST(CpuHost, CountsTheProcessorsOfTheAffinity) {
  const uint32_t before = UsableProcessors();
  EXPECT_GE(before, 1u);
  EXPECT_LE(before, std::thread::hardware_concurrency());
  KeepOneProcessor();
  EXPECT_EQ(UsableProcessors(), 1u);
}

TEST(CpuHost, GivesZeroedPagesOfWholeUnits) {
  for (const uint64_t size_bytes : {kPageUnit, 3 * kPageUnit}) {
    std::byte* pages = MapPages(size_bytes);
    ASSERT_NE(pages, nullptr);
    EXPECT_EQ(pages[0], std::byte{0});
    EXPECT_EQ(pages[size_bytes - 1], std::byte{0});
    pages[size_bytes - 1] = std::byte{1};
    UnmapPages(pages, size_bytes);
  }
}

}  // namespace
}  // namespace opmill
