#include "tests/bench/cpu_bandwidth.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace opmill {
namespace {

constexpr size_t kBlockBytes = size_t{4} << 20;

// Calls work(begin, size) for every block, on `threads` threads.
template <typename Work>
void ByAll(size_t size_bytes, uint32_t threads, Work work) {
  std::atomic<size_t> next = 0;
  const auto take = [&] {
    for (size_t begin = next.fetch_add(kBlockBytes); begin < size_bytes;
         begin = next.fetch_add(kBlockBytes)) {
      work(begin, std::min(kBlockBytes, size_bytes - begin));
    }
  };
  std::vector<std::thread> others;
  for (uint32_t i = 1; i < threads; ++i) others.emplace_back(take);
  take();
  for (std::thread& thread : others) thread.join();
}

}  // namespace

void ReadByAll(absl::Span<const std::byte> bytes, uint32_t threads) {
  static std::atomic<uint64_t> seen = 0;  // prevents the compiler from removing the reads
  ByAll(bytes.size(), threads, [&](size_t begin, size_t size) {
    constexpr size_t kLanes = 16;
    uint64_t sums[kLanes] = {};
    for (size_t at = begin; at + sizeof(sums) <= begin + size; at += sizeof(sums)) {
      uint64_t words[kLanes];
      std::memcpy(words, bytes.data() + at, sizeof(words));
      for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] |= words[lane];
    }
    for (const uint64_t sum : sums) seen |= sum;
  });
}

void CopyByAll(absl::Span<const std::byte> from, absl::Span<std::byte> to, uint32_t threads) {
  ByAll(from.size(), threads, [&](size_t begin, size_t size) {
    std::memcpy(to.data() + begin, from.data() + begin, size);
  });
}

}  // namespace opmill
