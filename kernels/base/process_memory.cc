#include "kernels/base/process_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>  // defines __GLIBC__ where it is
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace opmill {
namespace {

#ifdef __GLIBC__
unsigned MaxArenas() { return std::max(2u, std::thread::hardware_concurrency()); }

// malloc_trim leaves the free end of every arena but the first, up to 64 MiB each. free() returns
// it for its own arena when it is past the thresholds, so threads on all arenas free a block while
// those are low. New threads take arenas that no thread uses, then the others in rotation: twice as
// many threads as arenas, alive together, meet them all.
void TrimEndsOfArenas() {
  constexpr size_t kBlockBytes = 128 << 10;  // free() looks at the end from 64 KiB on
  mallopt(M_TRIM_THRESHOLD, 0);
  mallopt(M_TOP_PAD, 0);
  const unsigned count = 2 * MaxArenas();
  std::latch all_freed(count);
  std::vector<std::thread> threads;
  try {
    while (threads.size() < count) {
      threads.emplace_back([&all_freed] {
        void* volatile block = std::malloc(kBlockBytes);  // volatile keeps the compiler from it
        std::free(block);
        all_freed.arrive_and_wait();
      });
    }
  } catch (const std::system_error&) {  // the process may have no more threads: some arenas wait
    all_freed.count_down(static_cast<std::ptrdiff_t>(count - threads.size()));
  }
  for (std::thread& thread : threads) thread.join();
  TuneAllocatorForLargeMessages();
}
#endif

}  // namespace

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
  mallopt(M_ARENA_MAX, static_cast<int>(MaxArenas()));
#endif
}

void TuneForServing() {
  TuneAllocatorForLargeMessages();
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

uint64_t AllocatedBytes() {
#ifdef __GLIBC__
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

void ReturnFreeMemory() {
#ifdef __GLIBC__
  TrimEndsOfArenas();
  malloc_trim(0);
#endif
}

}  // namespace opmill
