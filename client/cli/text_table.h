// Tables and units in the output for people.
#ifndef OPMILL_CLIENT_CLI_TEXT_TABLE_H_
#define OPMILL_CLIENT_CLI_TEXT_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace opmill {

// Pads the cells into columns. With `align_right`, all columns but the first are right-aligned.
std::string TextTable(const std::vector<std::vector<std::string>>& rows, bool align_right);

std::string ShapeText(absl::Span<const uint32_t> sizes);  // as in NumPy: "(2, 3)", "(3,)"
std::string BytesText(uint64_t bytes);                    // "512 B", "64 MiB", "1.5 GiB"
std::string DurationText(absl::Duration duration);        // "13.2 us", "1.50 ms", "2.5 s"

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_TEXT_TABLE_H_
