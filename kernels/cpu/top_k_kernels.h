// The kernels of top_k, for the instruction set that the processor has.
#ifndef OPMILL_KERNELS_CPU_TOP_K_KERNELS_H_
#define OPMILL_KERNELS_CPU_TOP_K_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/work.h"

namespace opmill {

// An element and its place as one number: of two, the greater comes first. Of elements up to 4
// bytes it has 8 bytes, and else 16, the low half first.
struct WideCandidate {
  uint64_t place;  // inverted
  uint64_t key;
};
constexpr size_t CandidateBytes(CpuElement element) {
  return BytesOf(element) == 8 ? sizeof(WideCandidate) : sizeof(uint64_t);
}

inline constexpr size_t kMostTopKColumns = 256;

struct TopKKernels {
  // The first min(k, count) of `count` elements side by side, the first of which is at `position`,
  // in order. `candidates` has room for `room` of them, at least TopKRoom.
  void (*select)(const void* elements, size_t count, uint64_t position, size_t k, void* candidates,
                 size_t room) = nullptr;
  // Likewise of `width` sequences side by side, at most kMostTopKColumns, whose elements are
  // `stride` elements apart. Each has its own room, one after another.
  void (*select_columns)(const void* elements, size_t width, size_t count, size_t stride, size_t k,
                         void* candidates, size_t room) = nullptr;
  // The first k of two sorted lists.
  void (*merge)(const void* a, size_t a_count, const void* b, size_t b_count, size_t k,
                void* merged) = nullptr;
  uint64_t (*place)(const void* candidates, size_t i) = nullptr;
};

// So few elements are all sorted: [65536,128] with k=10 takes 24 ms so, and 64 ms by a threshold.
inline constexpr size_t kTopKSorted = 256;

// Candidates of `count` elements that are held at a time.
constexpr size_t TopKRoom(size_t count, size_t k) {
  const size_t room = k > 2 && 2 * k + 64 < kTopKSorted ? kTopKSorted : 2 * k + 64;
  return room < count ? room : count;
}

TopKKernels TopKKernelsOf(CpuElement element, bool largest);

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_TOP_K_KERNELS_H_
