// A word for programs, more precise than the code of a status: "MODEL_FILE_NEEDED".
#ifndef OPMILL_SERVER_STATUS_ERROR_REASON_H_
#define OPMILL_SERVER_STATUS_ERROR_REASON_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace opmill {

absl::Status WithReason(absl::Status status, absl::string_view reason);
std::optional<std::string> ErrorReasonOf(const absl::Status& status);

}  // namespace opmill

#endif  // OPMILL_SERVER_STATUS_ERROR_REASON_H_
