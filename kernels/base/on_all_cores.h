#ifndef OPMILL_KERNELS_BASE_ON_ALL_CORES_H_
#define OPMILL_KERNELS_BASE_ON_ALL_CORES_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace opmill {

// Calls `work` with the numbers below `count`, each once, on as many threads as there are
// processors, until one call returns false or throws, which throws here. For work that takes longer
// than the start of a thread.
inline void OnAllCores(size_t count, absl::FunctionRef<bool(size_t)> work) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> has_failed = false;
  std::exception_ptr failure;
  const auto take = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) {
        if (!work(i)) next = count;
      }
    } catch (...) {
      next = count;
      if (!has_failed.exchange(true)) failure = std::current_exception();
    }
  };
  std::vector<std::thread> helpers;
  const size_t threads = std::min<size_t>(count, std::thread::hardware_concurrency());
  helpers.reserve(threads);
  try {
    for (size_t i = 1; i < threads; ++i) helpers.emplace_back(take);
  } catch (const std::system_error&) {  // the process may have no more threads
  } catch (const std::bad_alloc&) {
  }
  take();
  for (std::thread& helper : helpers) helper.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_ON_ALL_CORES_H_
