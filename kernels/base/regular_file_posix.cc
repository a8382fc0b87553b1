#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/regular_file.h"
#include "kernels/base/system_error.h"

namespace opmill {
namespace {

absl::Status NotReadable(absl::string_view subject) {
  const int error = errno;
  return SystemError(absl::StrCat(subject, " cannot be read"), error);
}

}  // namespace

absl::StatusOr<std::string> ReadRegularFile(const std::string& path, size_t most_bytes,
                                            absl::string_view subject) {
  // O_NONBLOCK: opening a pipe would wait for a writer.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return NotReadable(subject);
  const absl::Cleanup close_file = [file] { close(file); };
  struct stat status = {};
  if (fstat(file, &status) != 0) return NotReadable(subject);
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(subject, " is not a regular file."));
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (size > most_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(subject, " has ", size, " bytes; the limit is ", most_bytes, "."));
  }
  std::string content(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t count = read(file, content.data() + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return NotReadable(subject);
    if (count == 0) break;  // it was truncated meanwhile
    done += static_cast<size_t>(count);
  }
  content.resize(done);
  return content;
}

}  // namespace opmill
