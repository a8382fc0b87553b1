// Errors of the operating system's functions.
#ifndef OPMILL_KERNELS_BASE_SYSTEM_ERROR_H_
#define OPMILL_KERNELS_BASE_SYSTEM_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace opmill {

// "<what>: <the system's reason>." `error` is errno, or GetLastError() on Windows. NotFound if
// there is no file of that name.
absl::Status SystemError(absl::string_view what, int error);

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_SYSTEM_ERROR_H_
