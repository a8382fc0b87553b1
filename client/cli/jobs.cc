#include "client/cli/jobs.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/cli/progress.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

// Enough to upload one while another is computed.
constexpr size_t kMaxThreads = 4;
// How far jobs may run ahead of the oldest unfinished one.
constexpr size_t kMaxAhead = 2 * kMaxThreads;

absl::Status RunJob(Client& client, ExecutionOptions options, Job& job) {
  std::vector<InputBytes> inputs;
  for (InputArray& input : job.inputs) {
    absl::StatusOr<InputBytes> bytes = input.load();
    input.load = nullptr;  // releases the source of the elements
    if (!bytes.ok()) return bytes.status();
    inputs.push_back(*std::move(bytes));
  }
  const size_t total_bytes = TotalBytes(inputs);
  std::optional<ProgressBar> bar;
  if (job.shows_progress && ProgressBar::IsWanted(total_bytes)) {
    bar.emplace(total_bytes);
    options.progress = [&bar](uint64_t sent_bytes) { bar->Show(sent_bytes); };
  }
  ResultSink sink(job.targets, job.dropped_axes);
  ASSIGN_OR_RETURN(const v1::ExecutionStatistics statistics,
                   client.Execute(job.computation, inputs, sink, options));
  RETURN_IF_ERROR(sink.Commit());
  job.text = sink.Text();
  job.json = sink.Json(statistics);
  job.npys = sink.TakeNpys();
  return absl::OkStatus();
}

// Distributes jobs to threads; one thread waits for their ends, in order.
class Queue {
 public:
  explicit Queue(size_t size) : has_ended_(size) {}

  std::optional<size_t> Take() {
    const auto may_take = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return next_ == has_ended_.size() || next_ < finished_ + kMaxAhead;
    };
    const absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&may_take));
    if (next_ == has_ended_.size()) return std::nullopt;
    return next_++;
  }
  void End(size_t index) {
    const absl::MutexLock lock(&mutex_);
    has_ended_[index] = true;
  }
  void AwaitEnd(size_t index) {
    const auto has_ended = [this, index]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> bool {
      return has_ended_[index];
    };
    const absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&has_ended));
  }
  void Finish(size_t index) {
    const absl::MutexLock lock(&mutex_);
    finished_ = index + 1;
  }

 private:
  absl::Mutex mutex_;
  std::vector<bool> has_ended_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t finished_ ABSL_GUARDED_BY(mutex_) = 0;
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
