#include "server/access/watched_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/regular_file.h"
#include "kernels/base/sha256.h"

namespace opmill {

absl::StatusOr<std::string> ReadWatchedFile(const std::string& path) {
  return ReadRegularFile(path, size_t{16} << 20, path);
}

WatchedFiles::WatchedFiles(std::vector<std::string> paths, std::function<void()> changed,
                           absl::Duration interval)
    : WatchedFiles([paths = std::move(paths)] { return FingerprintOf(paths); }, std::move(changed),
                   interval) {}

WatchedFiles::WatchedFiles(std::function<std::string()> fingerprint, std::function<void()> changed,
                           absl::Duration interval)
    : fingerprint_(std::move(fingerprint)),
      changed_(std::move(changed)),
      interval_(interval),
      acted_on_(fingerprint_()),
      thread_([this] { Watch(); }) {}

WatchedFiles::~WatchedFiles() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  woken_.SignalAll();
  thread_.join();
}

void WatchedFiles::CallBack() {
  {
    const absl::MutexLock lock(&mutex_);
    was_asked_ = true;
  }
  woken_.SignalAll();
}

std::string WatchedFiles::FingerprintOf(const std::vector<std::string>& paths) {
  std::string all;
  for (const std::string& path : paths) {
    const absl::StatusOr<std::string> text = ReadWatchedFile(path);
    absl::StrAppend(&all, path, "\n", text.ok() ? Sha256(*text) : text.status().message(), "\n");
  }
  return all;
}

void WatchedFiles::Watch() {
  std::string before = acted_on_;
  const auto is_woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || was_asked_;
  };
  for (;;) {
    bool was_asked = false;
    {
      const absl::MutexLock lock(&mutex_);
      woken_.Await(&mutex_, is_woken, SteadyNow() + interval_);
      if (stopping_) return;
      was_asked = std::exchange(was_asked_, false);
    }
    std::string now = fingerprint_();
    if (was_asked || (now == before && now != acted_on_)) {
      acted_on_ = now;
      changed_();
    }
    before = std::move(now);
  }
}

}  // namespace opmill
