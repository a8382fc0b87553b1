// Prints arrays as NumPy does.
#ifndef OPMILL_CLIENT_ARRAY_TEXT_H_
#define OPMILL_CLIENT_ARRAY_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "opmill/v1/tensor.pb.h"

namespace opmill {

// An element as a number; 64-bit integers are rounded to double.
double NumberAt(v1::DataType type, const std::byte* element);

// One element, with the fewest digits that identify it: "0.1", "inf", "-7".
std::string ElementText(v1::DataType type, const std::byte* element);

// The text of NumPy's print(), with default options, for a packed row-major array of 1 or more
// dimensions and up to 1000 elements (NumPy abbreviates longer ones).
std::string ArrayText(v1::DataType type, absl::Span<const uint32_t> sizes,
                      absl::Span<const std::byte> elements);

}  // namespace opmill

#endif  // OPMILL_CLIENT_ARRAY_TEXT_H_
