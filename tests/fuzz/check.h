// Assertions for fuzz targets. A failure aborts the process, like a sanitizer's finding, so that
// the fuzzer keeps the input.
#ifndef OPMILL_TESTS_FUZZ_CHECK_H_
#define OPMILL_TESTS_FUZZ_CHECK_H_

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace opmill {

[[noreturn]] inline void FailCheck(const char* file, int line, const std::string& text) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, text.c_str());
  std::abort();
}

// True if the message is a sentence of reasonable length without control characters.
inline bool IsSentence(const absl::Status& refusal) {
  constexpr size_t kMaxLength = 2000;
  const absl::string_view text = refusal.message();
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7F') return false;
  }
  return text.size() > 10 && text.size() <= kMaxLength;
}

}  // namespace opmill

#define FUZZ_CHECK(condition, ...)                                                         \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      ::opmill::FailCheck(__FILE__, __LINE__, absl::StrCat(#condition ": ", __VA_ARGS__)); \
    }                                                                                      \
  } while (false)

#endif  // OPMILL_TESTS_FUZZ_CHECK_H_
