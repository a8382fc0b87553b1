#include "tests/bench/small_load.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/client_callback.h"

namespace opmill {
namespace {

// State shared by the lanes. Each lane measures separately, so that lanes do not wait for each
// other.
class Run {
 public:
  explicit Run(const LoadPlan& plan)
      : plan_(plan),
        measure_from_(absl::Now() + plan.warm_up),
        stop_at_(measure_from_ + plan.duration),
        running_(plan.concurrency) {}

  const LoadPlan& plan() const { return plan_; }
  bool IsMeasured(absl::Time begun, absl::Time ended) const {
    return begun >= measure_from_ && ended < stop_at_;
  }
  bool ShouldGoOn(absl::Time now) const { return now < stop_at_ && !failed_.load(); }

  void Fail(const absl::Status& status) {
    std::lock_guard<std::mutex> lock(mutex_);
    failure_.Update(status);
    failed_ = true;
  }

  void LaneEnded() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--running_ == 0) ended_.notify_all();
  }

  absl::Status AwaitLanes() {
    std::unique_lock<std::mutex> lock(mutex_);
    ended_.wait(lock, [&] { return running_ == 0; });
    return failure_;
  }

 private:
  const LoadPlan& plan_;
  const absl::Time measure_from_;
  const absl::Time stop_at_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::condition_variable ended_;
  uint32_t running_;
  absl::Status failure_;
};

class Lane {
 public:
  explicit Lane(Run& run) : run_(run) {}
  virtual ~Lane() = default;

  void Begin() {
    begun_ = absl::Now();
    BeginCall();
  }

  const std::vector<double>& latencies() const { return latencies_; }
  double batch_sum() const { return batch_sum_; }

 protected:
  virtual void BeginCall() = 0;

  // Must be the last action of a call on its lane.
  void End(const absl::Status& status, const std::string& payload, uint32_t batch_size) {
    const absl::Time now = absl::Now();
    if (!status.ok()) {
      run_.Fail(status);
    } else if (payload != run_.plan().expected) {
      run_.Fail(absl::DataLossError("An answer is not the expected one."));
    } else if (run_.IsMeasured(begun_, now)) {
      latencies_.push_back(absl::ToDoubleSeconds(now - begun_));
      batch_sum_ += batch_size;
    }
    if (run_.ShouldGoOn(now)) return Begin();
    run_.LaneEnded();
  }

 private:
  Run& run_;
  absl::Time begun_;
  std::vector<double> latencies_;
  double batch_sum_ = 0;
};

absl::StatusOr<LoadReport> Report(Run& run, const std::vector<std::unique_ptr<Lane>>& lanes) {
  const absl::Status status = run.AwaitLanes();
  if (!status.ok()) return status;
  LoadReport report;
  for (const std::unique_ptr<Lane>& lane : lanes) {
    report.latencies.insert(report.latencies.end(), lane->latencies().begin(),
                            lane->latencies().end());
    report.mean_batch += lane->batch_sum();
  }
  if (report.latencies.empty()) return absl::DeadlineExceededError("No call ended in time.");
  std::sort(report.latencies.begin(), report.latencies.end());
  const auto count = static_cast<double>(report.latencies.size());
  report.mean_batch /= count;
  report.calls_per_second = count / absl::ToDoubleSeconds(run.plan().duration);
  return report;
}

absl::Status ToStatus(const grpc::Status& status, const Seen& seen) {
  if (!status.ok()) return absl::InternalError(status.error_message());
  return seen.ended ? absl::OkStatus() : absl::InternalError("An answer has no end.");
}

class UnaryLane : public Lane {
 public:
  UnaryLane(Run& run, grpc::GenericStub& stub, const Outgoing& outgoing)
      : Lane(run), stub_(stub), outgoing_(outgoing) {}

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer answer;
  };

  void BeginCall() override {
    auto call = std::make_shared<Call>();
    stub_.UnaryCall(&call->context, outgoing_.method, {}, &outgoing_.messages[0], &call->answer,
                    [this, call](const grpc::Status& status) {
                      Seen seen;
                      const absl::Status look =
                          status.ok() ? Look(outgoing_.answer, call->answer, true, seen)
                                      : absl::OkStatus();
                      End(look.ok() ? ToStatus(status, seen) : look, seen.payload, 0);
                    });
  }

  grpc::GenericStub& stub_;
  const Outgoing& outgoing_;
};

class StreamedAnswerLane : public Lane {
 public:
  StreamedAnswerLane(Run& run, grpc::GenericStub& stub, const Outgoing& outgoing)
      : Lane(run), stub_(stub), outgoing_(outgoing) {}

 private:
  class Call : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
   public:
    explicit Call(StreamedAnswerLane& lane) : lane_(lane), request_(lane.outgoing_.messages[0]) {}

    // Uses as few batches as the stub of a method whose response is a stream.
    void Start() {
      context_.set_initial_metadata_corked(true);
      lane_.stub_.PrepareBidiStreamingCall(&context_, lane_.outgoing_.method, {}, this);
      StartWriteLast(&request_, grpc::WriteOptions());
      StartRead(&answer_);
      StartCall();
    }
    void OnReadDone(bool ok) override {
      if (!ok) return;
      failure_.Update(Look(lane_.outgoing_.answer, answer_, true, seen_));
      answer_.Clear();
      if (!seen_.ended) StartRead(&answer_);
    }
    void OnDone(const grpc::Status& status) override {
      StreamedAnswerLane& lane = lane_;
      const absl::Status end = failure_.ok() ? ToStatus(status, seen_) : failure_;
      const Seen seen = std::move(seen_);
      delete this;
      lane.End(end, seen.payload, seen.statistics.batch_size);
    }

   private:
    StreamedAnswerLane& lane_;
    grpc::ClientContext context_;
    grpc::ByteBuffer request_;
    grpc::ByteBuffer answer_;
    Seen seen_;
    absl::Status failure_;
  };

  void BeginCall() override { (new Call(*this))->Start(); }

  grpc::GenericStub& stub_;
  const Outgoing& outgoing_;
};

class ExecutionLane : public Lane {
 public:
  ExecutionLane(Run& run, ExecutionStream& stream, const v1::OperatorDesc& desc,
                const InputBytes& input)
      : Lane(run), stream_(stream), desc_(desc), input_(input) {}

 private:
  void BeginCall() override {
    stream_.Begin(desc_, input_, sink_, [this](const absl::StatusOr<v1::ExecutionStatistics>& end) {
      std::string payload;
      for (const OutputTensor& output : sink_.outputs()) {
        payload.append(reinterpret_cast<const char*>(output.bytes.data()), output.bytes.size());
      }
      End(end.status(), payload, end.ok() ? end->batch_size() : 0);
    });
  }

  ExecutionStream& stream_;
  const v1::OperatorDesc& desc_;
  const InputBytes& input_;
  MemorySink sink_;
};

}  // namespace

absl::StatusOr<LoadReport> RunCalls(grpc::GenericStub& stub, const Outgoing& outgoing,
                                    const LoadPlan& plan) {
  Run run(plan);
  std::vector<std::unique_ptr<Lane>> lanes;
  for (uint32_t i = 0; i < plan.concurrency; ++i) {
    if (outgoing.streams_answer) {
      lanes.push_back(std::make_unique<StreamedAnswerLane>(run, stub, outgoing));
    } else {
      lanes.push_back(std::make_unique<UnaryLane>(run, stub, outgoing));
    }
    lanes.back()->Begin();
  }
  return Report(run, lanes);
}

absl::StatusOr<LoadReport> RunOnStream(Client& client, const v1::OperatorDesc& desc,
                                       const InputBytes& input, const LoadPlan& plan) {
  absl::StatusOr<std::unique_ptr<ExecutionStream>> stream = client.OpenStream();
  if (!stream.ok()) return stream.status();
  Run run(plan);
  std::vector<std::unique_ptr<Lane>> lanes;
  for (uint32_t i = 0; i < plan.concurrency; ++i) {
    lanes.push_back(std::make_unique<ExecutionLane>(run, **stream, desc, input));
    lanes.back()->Begin();
  }
  absl::StatusOr<LoadReport> report = Report(run, lanes);
  const absl::Status finished = (*stream)->Finish();
  if (!finished.ok()) return finished;
  return report;
}

}  // namespace opmill
