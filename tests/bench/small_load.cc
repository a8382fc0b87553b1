#include "tests/bench/small_load.h"

#include <atomic>
#include <memory>
#include <utility>

#include "client/cli/load_generator.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/client_callback.h"

namespace opmill {
namespace {

const std::atomic<bool> kNotInterrupted = false;

// Checks every payload.
class CallLane : public LoadLane {
 public:
  CallLane(LoadRun& run, grpc::GenericStub& stub, const Outgoing& outgoing,
           const std::string& expected)
      : LoadLane(run), stub_(stub), outgoing_(outgoing), expected_(expected) {}

 protected:
  // Must be the last action of a call on its lane.
  void End(absl::Status status, const Seen& seen) {
    if (status.ok() && seen.payload != expected_) {
      status = absl::DataLossError("An answer is not the expected one.");
    }
    BeginNext(status, {.batch_size = seen.statistics.batch_size});
  }

  grpc::GenericStub& stub_;
  const Outgoing& outgoing_;

 private:
  const std::string& expected_;
};

absl::Status ToStatus(const grpc::Status& status, const Seen& seen) {
  if (!status.ok()) return absl::InternalError(status.error_message());
  return seen.ended ? absl::OkStatus() : absl::InternalError("An answer has no end.");
}

class UnaryLane final : public CallLane {
 public:
  using CallLane::CallLane;

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
                      End(look.ok() ? ToStatus(status, seen) : look, seen);
                    });
  }
};

class StreamedAnswerLane final : public CallLane {
 public:
  using CallLane::CallLane;

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
      lane.End(end, seen);
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
};

}  // namespace

absl::StatusOr<LoadReport> RunCalls(grpc::GenericStub& stub, const Outgoing& outgoing,
                                    const LoadPlan& plan, const std::string& expected) {
  return RunLanes(plan, kNotInterrupted, [&](LoadRun& run) -> std::unique_ptr<LoadLane> {
    if (outgoing.streams_answer) {
      return std::make_unique<StreamedAnswerLane>(run, stub, outgoing, expected);
    }
    return std::make_unique<UnaryLane>(run, stub, outgoing, expected);
  });
}

absl::StatusOr<LoadReport> RunExecutions(Client& client, const v1::OperatorDesc& desc,
                                         const InputBytes& input, const LoadPlan& plan,
                                         const std::string& expected) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(expected.data());
  OutputTensor output;
  output.bytes.assign(bytes, bytes + expected.size());
  return RunOnStream(client, {.desc = desc, .inputs = {input}, .plan = plan}, {output},
                     kNotInterrupted);
}

}  // namespace opmill
