// One ExecuteStream call: a caller's messages pass through the real stream call, executor and
// reference device, in any order and with any end.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "cases.pb.h"
#include "kernels/engine/operator_cache.h"
#include "kernels/reference/device/reference_device.h"
#include "server/api/execute_stream_call.h"
#include "server/api/model_finder.h"
#include "server/execution/executor.h"
#include "server/execution/model_programs.h"
#include "server/execution/open_calls.h"
#include "server/models/inline_models.h"
#include "server/models/model_table.h"
#include "server/observe/log.h"
#include "tests/conformance/random.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/proto_mutator.h"
#include "tests/fuzz/stream_model.h"
#include "tests/fuzz/stream_transport.h"

namespace opmill {
namespace {

constexpr uint64_t kMaxTensorBytes = 64 << 10;
constexpr size_t kMaxUpload = 64 << 10;

// Shared by all calls of the process.
class Backend {
 public:
  Backend() {
    StartLog(LogFormat::kJson, LogLevel::kInfo, std::fopen("/dev/null", "w"));
    device_ = CreateReferenceDevice({.threads = 2});
    cache_ = OperatorCache::Create(*device_, {.capacity = 64});
    executor_ = std::make_unique<Executor>(
        *device_, *cache_, statistics_,
        Limits{.max_tensor_bytes = kMaxTensorBytes, .max_bytes_in_flight = uint64_t{1} << 30});
    tensors_ = std::make_unique<TensorStore>(*device_, ResidentTensorLimits{1 << 20});
    programs_ = std::make_shared<ModelPrograms>(*executor_, /*max_waits=*/16);
  }

  Executor& executor() { return *executor_; }
  TensorStore& tensors() { return *tensors_; }
  ModelSources models() { return {*models_, *inline_models_, *programs_, *budget_}; }

  // Waits until nothing is in progress and all reservations are released.
  bool IsIdle() const {
    if (executor_->open_executions() > 0 || executor_->memory().used() > 0) return false;
    for (size_t stage = 0; stage < kOpenStages; ++stage) {
      if (statistics_.in_stage(static_cast<Stage>(stage)) > 0) return false;
    }
    return true;
  }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<OperatorCache> cache_;
  std::unique_ptr<TensorStore> tensors_;
  Statistics statistics_;
  const std::shared_ptr<ByteBudget> budget_ = std::make_shared<ByteBudget>(1 << 20, "models");
  std::unique_ptr<InlineModels> inline_models_ =
      std::make_unique<InlineModels>(InlineModelLimits{.models = 4, .each = {.budget = budget_}});
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<ModelTable> models_ = std::make_unique<ModelTable>();
  std::shared_ptr<ModelPrograms> programs_;
};

v1::ExecuteStreamRequest MessageOf(const fuzz::Upload& upload) {
  v1::ExecuteStreamRequest message;
  message.set_execution_id(upload.execution_id());
  message.set_end_of_inputs(upload.end_of_inputs());
  v1::TensorChunk& chunk = *message.add_chunks();
  chunk.set_offset(upload.offset());
  chunk.mutable_data()->resize(upload.size() % (kMaxUpload + 1));
  Random random(upload.seed());
  for (char& c : *chunk.mutable_data()) c = static_cast<char>(random.Bits());
  return message;
}

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// Passes a step to the call and to the model.
class Caller {
 public:
  explicit Caller(StreamTransport& transport, StreamModel& model, OpenCalls& open_calls)
      : transport_(transport), model_(model), open_calls_(open_calls) {}

  void Take(const fuzz::StreamStep& step) {
    switch (step.step_case()) {
      case fuzz::StreamStep::kMessage:
        Send(step.message(), step.message().SerializeAsString());
        break;
      case fuzz::StreamStep::kRaw: {
        v1::ExecuteStreamRequest message;
        if (message.ParseFromString(step.raw())) {
          Send(message, step.raw());
        } else {
          transport_.Deliver(BufferOf(step.raw()));
        }
        break;
      }
      case fuzz::StreamStep::kUpload: {
        const v1::ExecuteStreamRequest message = MessageOf(step.upload());
        Send(message, message.SerializeAsString());
        break;
      }
      case fuzz::StreamStep::kEvent:
        Take(step.event());
        break;
      case fuzz::StreamStep::STEP_NOT_SET:
        break;
    }
  }

 private:
  // The model gets the message first, because the response may arrive before the delivery returns.
  void Send(const v1::ExecuteStreamRequest& message, const std::string& bytes) {
    if (transport_.half_closed() || transport_.cancelled()) return;
    const StreamModel before = model_;
    if (!model_.Sends(message)) return;
    if (!transport_.Deliver(BufferOf(bytes))) model_.TakeBack(message.execution_id(), before);
  }

  void Take(fuzz::StreamStep::Event event) {
    switch (event) {
      case fuzz::StreamStep::WRITE_DONE:
        transport_.EndWrite();
        break;
      case fuzz::StreamStep::HALF_CLOSE:
        transport_.HalfClose();
        break;
      case fuzz::StreamStep::CANCEL:
        transport_.Cancel();
        break;
      case fuzz::StreamStep::DRAIN:
        open_calls_.DrainAll();
        break;
      case fuzz::StreamStep::PAUSE:
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        break;
      default:
        break;
    }
  }

  StreamTransport& transport_;
  StreamModel& model_;
  OpenCalls& open_calls_;
};

void Run(const fuzz::StreamCase& c) {
  static Backend backend;
  StreamModel model;
  OpenCalls open_calls;
  grpc::CallbackServerContext context;
  StreamTransport transport([&model](const grpc::ByteBuffer& buffer) {
    v1::ExecuteStreamResponse message;
    std::vector<grpc::Slice> slices;
    std::string bytes;
    FUZZ_CHECK(buffer.Dump(&slices).ok(), "");
    for (const grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    FUZZ_CHECK(message.ParseFromString(bytes), "a response that is not a message");
    model.Receives(message);
  });
  transport.set_slow_reader(c.slow_reader());
  transport.Bind(ExecuteStreamCall::Start(context, {.rpc = "ExecuteStream", .peer = "fuzzer"},
                                          backend.executor(), open_calls, backend.models(),
                                          backend.tensors(), backend.executor().timer(),
                                          {.max_chunk_bytes = 1000, .max_executions = 4096}));
  Caller caller(transport, model, open_calls);
  for (const fuzz::StreamStep& step : c.steps()) caller.Take(step);
  const grpc::Status status = transport.Finish();
  if (status.ok()) {
    FUZZ_CHECK(transport.half_closed(), "an unrequested end");
    // After a cancellation, responses may have been dropped.
    if (!transport.cancelled()) model.Ended();
  }
  FUZZ_CHECK(open_calls.streams() == 0, open_calls.streams());
  const absl::Time patience = absl::Now() + absl::Seconds(20);
  while (!backend.IsIdle()) {
    FUZZ_CHECK(absl::Now() < patience, "something is still in progress");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace
}  // namespace opmill

OPMILL_FUZZ_MESSAGE(opmill::fuzz::StreamCase, opmill::Run)
