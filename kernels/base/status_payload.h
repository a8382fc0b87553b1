// Texts that a status carries besides its message.
#ifndef OPMILL_KERNELS_BASE_STATUS_PAYLOAD_H_
#define OPMILL_KERNELS_BASE_STATUS_PAYLOAD_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace opmill {

inline absl::Status WithPayload(absl::Status status, absl::string_view kind,
                                absl::string_view text) {
  status.SetPayload(kind, absl::Cord(text));
  return status;
}

inline std::optional<std::string> PayloadOf(const absl::Status& status, absl::string_view kind) {
  const auto payload = status.GetPayload(kind);
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_STATUS_PAYLOAD_H_
