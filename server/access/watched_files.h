// Files that are reread when they change while the server runs.
#ifndef OPMILL_SERVER_ACCESS_WATCHED_FILES_H_
#define OPMILL_SERVER_ACCESS_WATCHED_FILES_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace opmill {

// Reads up to `most` bytes of the file, plus one more byte if it is longer (some files have no
// end). Returns nullopt if the file cannot be read. Paths are UTF-8.
std::optional<std::string> ReadAtMost(const std::string& path, size_t most);

// Reads the whole file. Returns NotFound if it cannot be read or is larger than 16 MiB.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Polls the files, and calls `changed` when any content differs from what was last reported and has
// stopped changing: files that belong together are seldom replaced at the same instant. Compares
// contents, not times, so a symbolic link that now points elsewhere is noticed too.
class WatchedFiles {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(1);

  // `changed` is called on a thread that this object owns.
  WatchedFiles(std::vector<std::string> paths, std::function<void()> changed,
               absl::Duration interval = kInterval);
  ~WatchedFiles();

  // Schedules a call of `changed`, even if the files are unchanged.
  void CallBack() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::string Fingerprint() const;
  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::vector<std::string> paths_;
  const std::function<void()> changed_;
  const absl::Duration interval_;
  std::string acted_on_;  // the last reported fingerprint; used by thread_ only
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool was_asked_ ABSL_GUARDED_BY(mutex_) = false;  // CallBack was called
  std::thread thread_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_ACCESS_WATCHED_FILES_H_
