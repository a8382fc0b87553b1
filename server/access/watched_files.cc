#include "server/access/watched_files.h"

#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/base/sha256.h"
#include "kernels/base/utf8_path.h"

namespace opmill {
namespace {

constexpr size_t kMaxFileBytes = size_t{16} << 20;

}  // namespace

std::optional<std::string> ReadAtMost(const std::string& path, size_t most) {
  std::ifstream file(PathOf(path), std::ios::binary);
  std::string text;
  char buffer[4096];
  while (file.read(buffer, sizeof(buffer)) || file.gcount() > 0) {
    text.append(buffer, static_cast<size_t>(file.gcount()));
    if (text.size() > most) {
      text.resize(most + 1);
      return text;
    }
  }
  if (!file.eof()) return std::nullopt;
  return text;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::optional<std::string> text = ReadAtMost(path, kMaxFileBytes);
  if (!text.has_value()) return absl::NotFoundError(absl::StrCat(path, " cannot be read."));
  if (text->size() > kMaxFileBytes) {
    return absl::NotFoundError(
        absl::StrCat(path, " is larger than the limit of ", kMaxFileBytes, " bytes."));
  }
  return *std::move(text);
}

WatchedFiles::WatchedFiles(std::vector<std::string> paths, std::function<void()> changed,
                           absl::Duration interval)
    : WatchedFiles([paths = std::move(paths)] { return paths; }, std::move(changed), interval) {}

WatchedFiles::WatchedFiles(std::function<std::vector<std::string>()> paths,
                           std::function<void()> changed, absl::Duration interval)
    : paths_(std::move(paths)),
      changed_(std::move(changed)),
      interval_(interval),
      acted_on_(Fingerprint()),
      thread_([this] { Watch(); }) {}

WatchedFiles::~WatchedFiles() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void WatchedFiles::CallBack() {
  const absl::MutexLock lock(&mutex_);
  was_asked_ = true;
}

std::string WatchedFiles::Fingerprint() const {
  std::string all;
  for (const std::string& path : paths_()) {
    const absl::StatusOr<std::string> text = ReadFile(path);
    absl::StrAppend(&all, path, "\n", text.ok() ? Sha256(*text) : "-", "\n");
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
      mutex_.AwaitWithTimeout(absl::Condition(&is_woken), interval_);
      if (stopping_) return;
      was_asked = std::exchange(was_asked_, false);
    }
    std::string now = Fingerprint();
    if (was_asked || (now == before && now != acted_on_)) {
      acted_on_ = now;
      changed_();
    }
    before = std::move(now);
  }
}

}  // namespace opmill
