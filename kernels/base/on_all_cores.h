#ifndef OPMILL_KERNELS_BASE_ON_ALL_CORES_H_
#define OPMILL_KERNELS_BASE_ON_ALL_CORES_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace opmill {

// Calls `work` with the numbers below `count`, each once, on as many threads as there are
// processors, until one call returns false. For work that takes longer than the start of a thread.
inline void OnAllCores(size_t count, absl::FunctionRef<bool(size_t)> work) {
  std::atomic<size_t> next = 0;
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++) {
      if (!work(i)) next = count;
    }
  };
  std::vector<std::thread> helpers;
  const size_t threads = std::min<size_t>(count, std::thread::hardware_concurrency());
  try {
    for (size_t i = 1; i < threads; ++i) helpers.emplace_back(take);
  } catch (const std::system_error&) {  // the process may have no more threads
  }
  take();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_ON_ALL_CORES_H_
