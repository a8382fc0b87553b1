// Copies elements that are apart.
#ifndef OPMILL_KERNELS_CPU_GATHER_H_
#define OPMILL_KERNELS_CPU_GATHER_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "kernels/dims/iteration_space.h"

namespace opmill {

// Where the elements from `position` on lie in the input.
void InputOffsets(const SpaceDims& dims, uint64_t position, absl::Span<uint64_t> offsets);

void CopyElement(std::byte* to, const std::byte* from, uint32_t element_bytes);

// packed[r][i] = input[rows[r] + columns[i]], rows `pitch` elements apart.
void Gather(const std::byte* input, std::byte* packed, absl::Span<const uint64_t> columns,
            absl::Span<const uint64_t> rows, uint64_t pitch, uint32_t element_bytes);

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_GATHER_H_
