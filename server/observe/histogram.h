// A lock-free histogram for many threads.
#ifndef OPMILL_SERVER_OBSERVE_HISTOGRAM_H_
#define OPMILL_SERVER_OBSERVE_HISTOGRAM_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace opmill {

// `bounds` is ascending and holds the inclusive upper bound of each range. The last range has no
// upper bound.
template <const auto& bounds>
class Histogram {
 public:
  static constexpr size_t kRanges = bounds.size() + 1;

  struct Snapshot {
    std::array<uint64_t, kRanges> counts = {};  // per range
    uint64_t sum = 0;                           // of the values

    uint64_t count() const {
      uint64_t all = 0;
      for (const uint64_t each : counts) all += each;
      return all;
    }
  };

  void Add(uint64_t value) {
    const auto range = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
    counts_[static_cast<size_t>(range)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }

  // Not atomic: a concurrent Add may be missing from `counts` or from `sum`.
  Snapshot snapshot() const {
    Snapshot snapshot;
    for (size_t i = 0; i < kRanges; ++i) {
      snapshot.counts[i] = counts_[i].load(std::memory_order_relaxed);
    }
    snapshot.sum = sum_.load(std::memory_order_relaxed);
    return snapshot;
  }

 private:
  std::array<std::atomic<uint64_t>, kRanges> counts_ = {};
  std::atomic<uint64_t> sum_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_OBSERVE_HISTOGRAM_H_
