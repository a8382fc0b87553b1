// Memory moves for the processor's instruction set.
#ifndef OPMILL_KERNELS_CPU_MOVE_KERNELS_H_
#define OPMILL_KERNELS_CPU_MOVE_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace opmill {

// columns[c][r] = input[rows[r] + c] for c below `count`, columns `pitch` elements apart. Elements
// have 1, 2, 4 or 8 bytes.
void TransposeRows(const std::byte* input, absl::Span<const uint64_t> rows, uint64_t count,
                   std::byte* columns, uint64_t pitch, uint32_t element_bytes);

// Outputs of at least this size are written past the caches, which saves reading memory that is
// larger than the caches before it is written. Other threads see what was written after
// FinishStreams.
inline constexpr uint64_t kStreamedBytes = uint64_t{16} << 20;
void WriteZeros(std::byte* to, uint64_t size_bytes, bool past_caches);
// Past the caches: to[i] = positions[i] == position ? one : 0, for elements of 2 or 4 bytes.
void StreamOnes(absl::Span<const uint32_t> positions, uint32_t position, uint32_t one,
                std::byte* to, uint32_t element_bytes);
void FinishStreams();

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_MOVE_KERNELS_H_
