// Suggestions for misspelled names.
#ifndef OPMILL_KERNELS_BASE_NEAREST_H_
#define OPMILL_KERNELS_BASE_NEAREST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace opmill {

// The candidate that `word` is probably a misspelling of, or "". Words of more than 64 bytes are
// not compared.
std::string Nearest(absl::string_view word, const std::vector<std::string>& candidates);
// " Did you mean X?", or "".
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates,
                       absl::string_view prefix = "");

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_NEAREST_H_
