// Watches files for changes.
#ifndef OPMILL_SERVER_ACCESS_WATCHED_FILES_H_
#define OPMILL_SERVER_ACCESS_WATCHED_FILES_H_

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kernels/base/steady_time.h"

namespace opmill {

// The content of a file of at most 16 MiB (kernels/base/regular_file.h).
absl::StatusOr<std::string> ReadWatchedFile(const std::string& path);

// Reads the files periodically. Calls back when a content has changed and then stayed the same for
// one interval, because files that belong together are seldom replaced at the same instant.
// Contents are compared, not times, so that a redirected symbolic link is a change too. If
// a file cannot be read, the reason counts as its content. Paths are UTF-8.
class WatchedFiles {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(1);

  // `changed` is called on a thread of this object.
  WatchedFiles(std::vector<std::string> paths, std::function<void()> changed,
               absl::Duration interval = kInterval);
  // `fingerprint`, which is called on the same thread, is the content.
  WatchedFiles(std::function<std::string()> fingerprint, std::function<void()> changed,
               absl::Duration interval = kInterval);
  ~WatchedFiles();

  // Requests a call back even if nothing has changed.
  void CallBack() ABSL_LOCKS_EXCLUDED(mutex_);

  // Of the contents of these files.
  static std::string FingerprintOf(const std::vector<std::string>& paths);

 private:
  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::function<std::string()> fingerprint_;
  const std::function<void()> changed_;
  const absl::Duration interval_;
  std::string acted_on_;  // the last reported fingerprint; used by the thread alone
  absl::Mutex mutex_;
  SteadyCondVar woken_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool was_asked_ ABSL_GUARDED_BY(mutex_) = false;  // by CallBack()
  std::thread thread_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_ACCESS_WATCHED_FILES_H_
