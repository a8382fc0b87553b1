#ifndef OPMILL_TESTS_SOAK_GATE_H_
#define OPMILL_TESTS_SOAK_GATE_H_

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace opmill {

// Lets a controller pause several threads at the same time.
class Gate {
 public:
  // Waits while threads are paused. Returns false after Close. After true, Leave must be called.
  bool Enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !resting_ || over_; });
    if (over_) return false;
    ++inside_;
    return true;
  }
  void Leave() {
    const std::lock_guard lock(mutex_);
    --inside_;
    changed_.notify_all();
  }

  // When this returns no thread is inside, until Resume.
  void Rest() {
    std::unique_lock lock(mutex_);
    resting_ = true;
    changed_.wait(lock, [this] { return inside_ == 0; });
  }
  void Resume() {
    const std::lock_guard lock(mutex_);
    resting_ = false;
    changed_.notify_all();
  }
  void Close() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t inside_ = 0;
  bool resting_ = false;
  bool over_ = false;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_SOAK_GATE_H_
