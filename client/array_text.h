// Formats arrays as NumPy prints them.
#ifndef OPMILL_CLIENT_ARRAY_TEXT_H_
#define OPMILL_CLIENT_ARRAY_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "opmill/v1/tensor.pb.h"

namespace opmill {

// An element as a double; 64-bit integers may lose precision.
double NumberAt(v1::DataType type, const std::byte* element);
float FloatOfHalf(uint16_t bits);

// One element with the fewest digits that identify it: "0.1", "inf", "-7".
std::string ElementText(v1::DataType type, const std::byte* element);

// Formats a packed row-major array of at least 1 dimension like NumPy's print() with its default
// options, for up to 1000 elements (NumPy abbreviates larger arrays).
std::string ArrayText(v1::DataType type, absl::Span<const uint32_t> sizes,
                      absl::Span<const std::byte> elements);

}  // namespace opmill

#endif  // OPMILL_CLIENT_ARRAY_TEXT_H_
