#include "kernels/base/system_error.h"

#include <string>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace opmill {

absl::Status SystemError(absl::string_view what, int error) {
  const std::error_code code(error, std::system_category());
  const std::error_condition condition = code.default_error_condition();
  const absl::StatusCode status_code = condition.category() == std::generic_category()
                                           ? absl::ErrnoToStatusCode(condition.value())
                                           : absl::StatusCode::kUnknown;
  // On Windows it ends with a full stop and a line break.
  const std::string message = code.message();
  const absl::string_view reason =
      absl::StripSuffix(absl::StripTrailingAsciiWhitespace(message), ".");
  return absl::Status(status_code, absl::StrCat(what, ": ", reason, "."));
}

}  // namespace opmill
