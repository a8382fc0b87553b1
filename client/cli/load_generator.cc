#include "client/cli/load_generator.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"
#include "proto/duration.h"

namespace opmill {
namespace {

// Collects the measurements, and decides when to stop. Thread-safe.
class Recorder {
 public:
  Recorder(const LoadOptions& options, std::vector<OutputTensor> expected,
           const std::atomic<bool>& interrupted)
      : expected_(std::move(expected)),
        interrupted_(interrupted),
        record_from_(SteadyNow() + options.warm_up),
        stop_at_(record_from_ + options.duration) {}

  bool ShouldGoOn() {
    const absl::MutexLock lock(&mutex_);
    return failure_.ok() && !interrupted_.load() && SteadyNow() < stop_at_;
  }

  void Record(absl::Time begun, const absl::StatusOr<v1::ExecutionStatistics>& end,
              const std::vector<OutputTensor>& outputs) {
    const absl::Time now = SteadyNow();
    absl::Status failure = end.ok() ? Compare(outputs) : end.status();
    const absl::MutexLock lock(&mutex_);
    if (!failure.ok()) {
      if (failure_.ok()) failure_ = std::move(failure);
      return;
    }
    if (begun < record_from_) return;
    report_.latencies.push_back(now - begun);
    report_.measured = now - record_from_;
    report_.upload += DecodeDuration(end->upload());
    report_.queue += DecodeDuration(end->queue());
    report_.compute += DecodeDuration(end->compute());
    report_.download += DecodeDuration(end->download());
    report_.batch_size += end->batch_size();
  }

  absl::StatusOr<LoadReport> Take() {
    const absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
    std::sort(report_.latencies.begin(), report_.latencies.end());
    return std::move(report_);
  }

 private:
  absl::Status Compare(const std::vector<OutputTensor>& outputs) const {
    for (size_t i = 0; i < expected_.size(); ++i) {
      if (i < outputs.size() && outputs[i].bytes == expected_[i].bytes) continue;
      return absl::DataLossError(
          absl::StrCat("Output ", i, " of an execution differs from that of the first one."));
    }
    return absl::OkStatus();
  }

  const std::vector<OutputTensor> expected_;
  const std::atomic<bool>& interrupted_;
  const absl::Time record_from_;
  const absl::Time stop_at_;
  absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  LoadReport report_ ABSL_GUARDED_BY(mutex_);
};

// One of several concurrent executions on a stream: when one ends, the next begins.
class Lane {
 public:
  Lane(ExecutionStream& stream, const LoadOptions& options, Recorder& recorder)
      : stream_(stream), options_(options), recorder_(recorder) {}

  void Begin() {
    begun_ = SteadyNow();
    stream_.Begin(
        options_.desc, options_.inputs, sink_,
        [this](const absl::StatusOr<v1::ExecutionStatistics>& end) {
          recorder_.Record(begun_, end, sink_.outputs());
          if (recorder_.ShouldGoOn()) return Begin();
          const absl::MutexLock lock(&mutex_);
          is_done_ = true;
        },
        options_.execution);
  }
  void AwaitEnd() {
    const absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_done_));
  }

 private:
  ExecutionStream& stream_;
  const LoadOptions& options_;
  Recorder& recorder_;
  MemorySink sink_;
  absl::Time begun_;
  absl::Mutex mutex_;
  bool is_done_ ABSL_GUARDED_BY(mutex_) = false;
};

absl::Status RunStream(Client& client, const LoadOptions& options, Recorder& recorder) {
  ASSIGN_OR_RETURN(std::unique_ptr<ExecutionStream> stream, client.OpenStream());
  std::vector<std::unique_ptr<Lane>> lanes;
  for (uint32_t i = 0; i < options.concurrency; ++i) {
    lanes.push_back(std::make_unique<Lane>(*stream, options, recorder));
    lanes.back()->Begin();
  }
  for (const std::unique_ptr<Lane>& lane : lanes) lane->AwaitEnd();
  return stream->Finish();
}

void RunThreads(Client& client, const LoadOptions& options, Recorder& recorder) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < options.concurrency; ++i) {
    threads.emplace_back([&] {
      do {
        MemorySink sink;
        const absl::Time begun = SteadyNow();
        const absl::StatusOr<v1::ExecutionStatistics> end =
            client.ExecuteInOneMessage(options.desc, options.inputs, sink, options.execution);
        recorder.Record(begun, end, sink.outputs());
      } while (recorder.ShouldGoOn());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

absl::StatusOr<LoadReport> RunLoad(Client& client, const LoadOptions& options,
                                   const std::atomic<bool>& interrupted) {
  MemorySink first;
  const absl::Time begun = SteadyNow();
  RETURN_IF_ERROR(client.Execute(options.desc, options.inputs, first, options.execution).status());
  const absl::Duration first_call = SteadyNow() - begun;
  uint64_t bytes_per_call = TotalBytes(options.inputs);
  for (const OutputTensor& output : first.outputs()) bytes_per_call += output.bytes.size();

  Recorder recorder(options, std::move(first.outputs()), interrupted);
  absl::Status status;
  if (options.in_one_message) {
    RunThreads(client, options, recorder);
  } else {
    status = RunStream(client, options, recorder);
  }
  // First, because the error of an execution tells more than that of the stream.
  ASSIGN_OR_RETURN(LoadReport report, recorder.Take());
  RETURN_IF_ERROR(status);
  report.concurrency = options.concurrency;
  report.first_call = first_call;
  report.bytes_per_call = bytes_per_call;
  return report;
}

}  // namespace opmill
