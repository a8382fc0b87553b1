// Reads small files whose names come from settings.
#ifndef OPMILL_KERNELS_BASE_REGULAR_FILE_H_
#define OPMILL_KERNELS_BASE_REGULAR_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace opmill {

// The content of a regular file of at most `most_bytes` bytes. `path` is UTF-8, and may be a link.
// Never waits for data: pipes, sockets and devices are refused, and of a file that grows meanwhile
// only its size at the time of opening is read. Files that the kernel generates, such as
// /proc/kmsg, have size 0. Errors are sentences about `subject`; NotFound if there is no file.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, size_t most_bytes,
                                            absl::string_view subject);

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_REGULAR_FILE_H_
