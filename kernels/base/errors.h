// Errors are absl::Status: a full sentence with the value and the limit, and as a payload the path
// of the descriptor field ("input.sizes[2]", "axes[1]", "k").
#ifndef OPMILL_KERNELS_BASE_ERRORS_H_
#define OPMILL_KERNELS_BASE_ERRORS_H_

#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace opmill {

absl::Status InvalidField(absl::string_view field, absl::string_view sentence);
absl::Status UnsupportedAtLevel(absl::string_view field, absl::string_view sentence);
absl::Status WithField(absl::Status status, absl::string_view field);
std::optional<std::string> FieldOf(const absl::Status& status);

// Cancelled after a stop, which says that the result of the work is not needed any more.
absl::Status CheckAbandoned(const std::stop_token& abandoned);

}  // namespace opmill

#define OPMILL_CONCAT_INNER(a, b) a##b
#define OPMILL_CONCAT(a, b) OPMILL_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expression)                                         \
  do {                                                                      \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#define ASSIGN_OR_RETURN(declaration, expression) \
  ASSIGN_OR_RETURN_IMPL(OPMILL_CONCAT(status_or_, __LINE__), declaration, expression)
#define ASSIGN_OR_RETURN_IMPL(temporary, declaration, expression) \
  auto temporary = (expression);                                  \
  if (!temporary.ok()) return std::move(temporary).status();      \
  declaration = *std::move(temporary)

#endif  // OPMILL_KERNELS_BASE_ERRORS_H_
