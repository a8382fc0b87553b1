// Text and elements as bytes.
#ifndef OPMILL_TESTS_CLIENT_BYTES_OF_H_
#define OPMILL_TESTS_CLIENT_BYTES_OF_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace opmill {

inline absl::Span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

template <typename Element>
absl::Span<const std::byte> BytesOf(const std::vector<Element>& elements) {
  return {reinterpret_cast<const std::byte*>(elements.data()), elements.size() * sizeof(Element)};
}

}  // namespace opmill

#endif  // OPMILL_TESTS_CLIENT_BYTES_OF_H_
