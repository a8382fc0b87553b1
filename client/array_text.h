// Arrays as NumPy prints them.
#ifndef OPMILL_CLIENT_ARRAY_TEXT_H_
#define OPMILL_CLIENT_ARRAY_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "opmill/v1/tensor.pb.h"

namespace opmill {

// An element as a number; 64-bit integers lose what a double cannot hold.
double NumberAt(v1::DataType type, const std::byte* element);
float FloatOfHalf(uint16_t bits);

// One element, written with the fewest digits that give it back: "0.1", "inf", "-7".
std::string ElementText(v1::DataType type, const std::byte* element);

// What NumPy's print() writes of a packed row-major array of 1 or more dimensions, with its default
// options, as long as it has no more than 1000 elements (NumPy cuts longer ones).
std::string ArrayText(v1::DataType type, absl::Span<const uint32_t> sizes,
                      absl::Span<const std::byte> elements);

}  // namespace opmill

#endif  // OPMILL_CLIENT_ARRAY_TEXT_H_
