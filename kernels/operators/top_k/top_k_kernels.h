// The kernels of top_k for the current instruction set.
#ifndef OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_KERNELS_H_
#define OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/descriptor/tensor.h"

namespace opmill {

// A candidate is an element and its position, combined into one number: the greater candidate comes
// first. Candidates have 8 bytes for elements of up to 4 bytes, otherwise 16, low half first.
struct WideCandidate {
  uint64_t place;  // the inverted position
  uint64_t key;
};
inline size_t CandidateBytes(DataType type) {
  return ElementBytes(type) == 8 ? sizeof(WideCandidate) : sizeof(uint64_t);
}

inline constexpr size_t kMostTopKColumns = 256;

struct TopKKernels {
  // Writes the first min(k, count) candidates of `count` contiguous elements, in order. The first
  // element has position `position`. `candidates` has room for `room` candidates, at least
  // TopKRoom.
  void (*select)(const void* elements, size_t count, uint64_t position, size_t k, void* candidates,
                 size_t room) = nullptr;
  // The same for `width` adjacent sequences, at most kMostTopKColumns. Consecutive elements of a
  // sequence are `stride` elements apart. Each sequence has its own `room` candidates.
  void (*select_columns)(const void* elements, size_t width, size_t count, size_t stride, size_t k,
                         void* candidates, size_t room) = nullptr;
  // Merges the first k candidates of two sorted lists.
  void (*merge)(const void* a, size_t a_count, const void* b, size_t b_count, size_t k,
                void* merged) = nullptr;
  // Writes the positions of `count` candidates.
  void (*places)(const void* candidates, size_t count, uint64_t* places) = nullptr;
};

// Up to this many elements are all sorted: [65536,128] with k=10 takes 24 ms this way, and 64 ms
// with a threshold.
inline constexpr size_t kTopKSorted = 256;

// The room that select needs: the number of candidates that it holds at a time.
constexpr size_t TopKRoom(size_t count, size_t k) {
  const size_t room = k > 2 && 2 * k + 64 < kTopKSorted ? kTopKSorted : 2 * k + 64;
  return room < count ? room : count;
}

TopKKernels TopKKernelsOf(DataType type, bool largest);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_KERNELS_H_
