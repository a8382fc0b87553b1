#include "proto/allocator.h"

#include <algorithm>
#include <cstdlib>  // defines __GLIBC__ where it is
#include <thread>

#include "absl/synchronization/mutex.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace opmill {

void TuneAllocatorForLargeMessages() {
#ifdef __GLIBC__
  constexpr int kTrimThresholdBytes = 2'147'483'647;  // mallopt takes no more
  constexpr int kTopPadBytes = 64 << 20;
  // The most it takes. Slices that gRPC reads into grow to some MiB.
  constexpr int kMmapThresholdBytes = 32 << 20;
  mallopt(M_TRIM_THRESHOLD, kTrimThresholdBytes);
  mallopt(M_TOP_PAD, kTopPadBytes);
  mallopt(M_MMAP_THRESHOLD, kMmapThresholdBytes);
  // What is kept is kept by each arena. glibc's eight a core kept 100 MB more after some gigabytes
  // each way, and were not faster.
  mallopt(M_ARENA_MAX, static_cast<int>(std::max(2u, std::thread::hardware_concurrency())));
#endif
}

void TuneForServing() {
  TuneAllocatorForLargeMessages();
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

void ReturnFreeMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace opmill
