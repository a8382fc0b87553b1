// Files whose contents count while the server runs.
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

// Of the file's bytes `most`, and one more where it is longer; some files have no end. Absent where
// it cannot be read. Paths are UTF-8.
std::optional<std::string> ReadAtMost(const std::string& path, size_t most);

// All of them. NotFound where it cannot be read, or has more than 16 MiB.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Reads the files again and again, and calls back once what any of them holds is another than
// before and stands still: files that belong together are seldom replaced at the same instant.
// Contents and not times are compared, so that a link that now leads elsewhere counts too.
class WatchedFiles {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(1);

  // `changed` comes on a thread of this object's.
  WatchedFiles(std::vector<std::string> paths, std::function<void()> changed,
               absl::Duration interval = kInterval);
  ~WatchedFiles();

  // Calls back soon, whatever the files hold.
  void CallBack() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::string Fingerprint() const;
  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::vector<std::string> paths_;
  const std::function<void()> changed_;
  const absl::Duration interval_;
  std::string acted_on_;  // the fingerprint; of the thread
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool was_asked_ ABSL_GUARDED_BY(mutex_) = false;  // to call back
  std::thread thread_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_ACCESS_WATCHED_FILES_H_
