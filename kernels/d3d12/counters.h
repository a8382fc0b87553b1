#ifndef OPMILL_KERNELS_D3D12_COUNTERS_H_
#define OPMILL_KERNELS_D3D12_COUNTERS_H_

#include <atomic>
#include <cstdint>

namespace opmill {

// Counters of one D3D12Device, across its generations.
struct Counters {
  std::atomic<uint64_t> runs{0};
  std::atomic<uint64_t> submissions{0};
  std::atomic<uint64_t> dispatches{0};
  std::atomic<uint64_t> barriers{0};  // calls, each of which the device waits for
  std::atomic<uint64_t> timestamps{0};
  std::atomic<uint64_t> pipelines_created{0};
  std::atomic<uint64_t> resets{0};
  std::atomic<int64_t> longest_submission_nanoseconds{0};  // one thread writes at a time
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_COUNTERS_H_
