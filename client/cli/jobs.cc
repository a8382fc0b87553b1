#include "client/cli/jobs.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "client/cli/progress.h"

namespace opmill {
namespace {

// Enough that one uploads while another computes.
constexpr size_t kMaxThreads = 4;
// Jobs that may have begun before the oldest that `finish` has not seen.
constexpr size_t kMaxAhead = 2 * kMaxThreads;

absl::Status RunJob(Client& client, ExecutionOptions options, Job& job) {
  absl::StatusOr<InputBytes> bytes = job.input.load();
  job.input.load = nullptr;  // which may keep what the elements were made of
  if (!bytes.ok()) return bytes.status();
  std::optional<ProgressBar> bar;
  if (job.shows_progress && ProgressBar::IsWanted(bytes->size)) {
    bar.emplace(bytes->size);
    options.progress = [&bar](uint64_t sent_bytes) { bar->Show(sent_bytes); };
  }
  ResultSink sink(job.targets, job.dropped_axes);
  const absl::StatusOr<v1::ExecutionStatistics> statistics =
      client.Execute(job.desc, *std::move(bytes), sink, options);
  if (!statistics.ok()) return statistics.status();
  absl::Status status = sink.Commit();
  if (!status.ok()) return status;
  job.text = sink.Text();
  job.json = sink.Json(*statistics);
  job.npys = sink.TakeNpys();
  return absl::OkStatus();
}

// Hands out jobs to threads, and their ends to one that takes them in order.
class Queue {
 public:
  explicit Queue(size_t size) : has_ended_(size) {}

  std::optional<size_t> Take() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock,
                  [&] { return next_ == has_ended_.size() || next_ < finished_ + kMaxAhead; });
    if (next_ == has_ended_.size()) return std::nullopt;
    return next_++;
  }
  void End(size_t index) {
    std::lock_guard<std::mutex> lock(mutex_);
    has_ended_[index] = true;
    changed_.notify_all();
  }
  void AwaitEnd(size_t index) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return has_ended_[index]; });
  }
  void Finish(size_t index) {
    std::lock_guard<std::mutex> lock(mutex_);
    finished_ = index + 1;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> has_ended_;
  size_t next_ = 0;
  size_t finished_ = 0;
};

}  // namespace

void RunJobs(Client& client, const ExecutionOptions& options, std::vector<Job>& jobs,
             absl::FunctionRef<void(const Job&)> finish) {
  Queue queue(jobs.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::min(jobs.size(), kMaxThreads); ++i) {
    threads.emplace_back([&] {
      while (const std::optional<size_t> index = queue.Take()) {
        Job& job = jobs[*index];
        if (job.status.ok()) job.status = RunJob(client, options, job);
        queue.End(*index);
      }
    });
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    queue.AwaitEnd(i);
    finish(jobs[i]);
    jobs[i] = Job();
    queue.Finish(i);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace opmill
