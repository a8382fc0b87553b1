// Text in lines of limited length, for help pages.
#ifndef OPMILL_KERNELS_BASE_WRAP_WORDS_H_
#define OPMILL_KERNELS_BASE_WRAP_WORDS_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace opmill {

// Breaks `text` at blanks. All lines begin with `indent`, and none is longer than `columns` unless
// a word is.
inline std::string WrapWords(absl::string_view text, absl::string_view indent,
                             size_t columns = 100) {
  std::string wrapped;
  size_t column = 0;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    const bool fits = column > 0 && column + 1 + word.size() <= columns;
    absl::StrAppend(&wrapped, fits ? " " : column > 0 ? "\n" : "", fits ? "" : indent, word);
    column = (fits ? column + 1 : indent.size()) + word.size();
  }
  return wrapped;
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_WRAP_WORDS_H_
