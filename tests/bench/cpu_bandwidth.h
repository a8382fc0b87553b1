// Measures the memory bandwidth of the host, the limit of the cpu device's rows.
#ifndef OPMILL_TESTS_BENCH_CPU_BANDWIDTH_H_
#define OPMILL_TESTS_BENCH_CPU_BANDWIDTH_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace opmill {

// Read or copy every byte on `threads` threads.
void ReadByAll(absl::Span<const std::byte> bytes, uint32_t threads);
void CopyByAll(absl::Span<const std::byte> from, absl::Span<std::byte> to, uint32_t threads);

}  // namespace opmill

#endif  // OPMILL_TESTS_BENCH_CPU_BANDWIDTH_H_
