#include "client/cli/load_generator.h"

#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"
#include "proto/duration.h"

namespace opmill {
namespace {

ServerTimes TimesOf(const v1::ExecutionStatistics& statistics) {
  return {.upload = DecodeDuration(statistics.upload()),
          .queue = DecodeDuration(statistics.queue()),
          .compute = DecodeDuration(statistics.compute()),
          .download = DecodeDuration(statistics.download()),
          .batch_size = statistics.batch_size()};
}

absl::Status Compare(const std::vector<OutputTensor>& expected,
                     const std::vector<OutputTensor>& outputs) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (i < outputs.size() && outputs[i].bytes == expected[i].bytes) continue;
    return absl::DataLossError(
        absl::StrCat("Output ", i, " of an execution is not the expected one."));
  }
  return absl::OkStatus();
}

class ExecutionLane : public LoadLane {
 public:
  ExecutionLane(LoadRun& run, const ExecutionLoad& load, const std::vector<OutputTensor>& expected)
      : LoadLane(run), load_(load), expected_(expected) {}

 protected:
  const ExecutionLoad& load() const { return load_; }
  absl::Status Check(const absl::StatusOr<v1::ExecutionStatistics>& end, MemorySink& sink) const {
    return end.ok() ? Compare(expected_, sink.outputs()) : end.status();
  }
  static ServerTimes Times(const absl::StatusOr<v1::ExecutionStatistics>& end) {
    return end.ok() ? TimesOf(*end) : ServerTimes();
  }

 private:
  const ExecutionLoad& load_;
  const std::vector<OutputTensor>& expected_;
};

class StreamLane final : public ExecutionLane {
 public:
  StreamLane(LoadRun& run, const ExecutionLoad& load, const std::vector<OutputTensor>& expected,
             ExecutionStream& stream)
      : ExecutionLane(run, load, expected), stream_(stream) {}

 private:
  void BeginCall() override {
    stream_.Begin(
        load().desc, load().inputs, sink_,
        [this](const absl::StatusOr<v1::ExecutionStatistics>& end) {
          BeginNext(Check(end, sink_), Times(end));
        },
        load().options);
  }

  ExecutionStream& stream_;
  MemorySink sink_;
};

// Its calls block, so it has a thread.
class ThreadLane final : public ExecutionLane {
 public:
  ThreadLane(LoadRun& run, const ExecutionLoad& load, const std::vector<OutputTensor>& expected,
             Client& client)
      : ExecutionLane(run, load, expected), client_(client) {}
  ~ThreadLane() override { thread_.join(); }

 private:
  void BeginCall() override {
    thread_ = std::thread([this] {
      absl::Status status;
      ServerTimes times;
      do {
        MemorySink sink;
        const absl::StatusOr<v1::ExecutionStatistics> end =
            client_.ExecuteInOneMessage(load().desc, load().inputs, sink, load().options);
        status = Check(end, sink);
        times = Times(end);
      } while (CallEnded(status, times));
    });
  }

  Client& client_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<LoadReport> RunOnStream(Client& client, const ExecutionLoad& load,
                                       const std::vector<OutputTensor>& expected,
                                       const std::atomic<bool>& interrupted) {
  ASSIGN_OR_RETURN(std::unique_ptr<ExecutionStream> stream, client.OpenStream());
  // First, because the error of an execution tells more than that of the stream.
  ASSIGN_OR_RETURN(LoadReport report, RunLanes(load.plan, interrupted, [&](LoadRun& run) {
                     return std::make_unique<StreamLane>(run, load, expected, *stream);
                   }));
  RETURN_IF_ERROR(stream->Finish());
  return report;
}

absl::StatusOr<LoadReport> RunLoad(Client& client, const ExecutionLoad& load,
                                   const std::atomic<bool>& interrupted) {
  MemorySink first;
  const absl::Time begun = SteadyNow();
  RETURN_IF_ERROR(client.Execute(load.desc, load.inputs, first, load.options).status());
  const absl::Duration first_call = SteadyNow() - begun;
  const std::vector<OutputTensor> expected = std::move(first.outputs());
  absl::StatusOr<LoadReport> report =
      load.in_one_message
          ? RunLanes(load.plan, interrupted,
                     [&](LoadRun& run) {
                       return std::make_unique<ThreadLane>(run, load, expected, client);
                     })
          : RunOnStream(client, load, expected, interrupted);
  if (!report.ok()) return report.status();
  report->first_call = first_call;
  report->bytes_per_call = TotalBytes(load.inputs);
  for (const OutputTensor& output : expected) report->bytes_per_call += output.bytes.size();
  return report;
}

}  // namespace opmill
