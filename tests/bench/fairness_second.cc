#include "tests/bench/fairness_second.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"

namespace opmill {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;

v1::OperatorDesc HardmaxOf(uint64_t bytes) {
  v1::OperatorDesc desc;
  v1::TensorDesc& input = *desc.mutable_hardmax()->mutable_input();
  input.set_data_type(v1::DATA_TYPE_FLOAT32);
  input.add_sizes(static_cast<uint32_t>(bytes / 4 / 1024));
  input.add_sizes(1024);
  desc.mutable_hardmax()->add_axes(1);
  return desc;
}

// Many elements that share one location in memory.
v1::OperatorDesc BroadcastOf(uint32_t count_log2) {
  v1::OperatorDesc desc;
  desc.mutable_reduce()->set_function(v1::REDUCE_FUNCTION_SUM);
  v1::TensorDesc& input = *desc.mutable_reduce()->mutable_input();
  input.set_data_type(v1::DATA_TYPE_FLOAT32);
  input.add_sizes(1u << 15);
  input.add_sizes(1u << (count_log2 - 15));
  for (int i = 0; i < 2; ++i) input.add_strides(0);
  for (const uint32_t axis : {0, 1}) desc.mutable_reduce()->add_axes(axis);
  return desc;
}

void AddChunk(uint64_t offset, size_t bytes, v1::ExecuteStreamRequest& to) {
  v1::TensorChunk& chunk = *to.add_chunks();
  chunk.set_offset(offset);
  chunk.set_data(std::string(bytes, '\1'));
}

v1::ExecuteStreamRequest Begin(uint64_t id, v1::OperatorDesc desc, size_t bytes) {
  v1::ExecuteStreamRequest request;
  request.set_execution_id(id);
  *request.mutable_begin()->mutable_operator_() = std::move(desc);
  AddChunk(0, bytes, request);
  return request;
}

}  // namespace

v1::OperatorDesc ArgMinOf(uint32_t count) {
  v1::OperatorDesc desc;
  v1::TensorDesc& input = *desc.mutable_arg_min()->mutable_input();
  input.set_data_type(v1::DATA_TYPE_FLOAT32);
  input.add_sizes(count);
  desc.mutable_arg_min()->add_axes(0);
  desc.mutable_arg_min()->set_axis_direction(v1::AXIS_DIRECTION_INCREASING);
  return desc;
}

void SetToken(grpc::ClientContext& context, absl::string_view token) {
  context.AddMetadata("authorization", absl::StrCat("Bearer ", token));
}

void Second::Run(const std::string& kind) {
  if (kind == "uploads") return UploadSlowly();
  if (kind == "busy") {
    return OnThreads(std::thread::hardware_concurrency(), [this](Stub&) {
      const absl::Time end = absl::Now() + absl::Milliseconds(100);
      while (absl::Now() < end) {
      }
      Count();
    });
  }
  if (kind == "cancels") {
    return OnThreads(8, [this](Stub& stub) { Cancel(stub); });
  }
  v1::OperatorDesc desc = ArgMinOf(1024);
  uint64_t bytes = 4096;
  if (kind == "hardmax") {
    desc = HardmaxOf(options_.tensor_bytes);
    bytes = options_.tensor_bytes;
  } else if (kind == "broadcasts") {
    desc = BroadcastOf(options_.broadcast_log2);
    bytes = 4;
  }
  const uint32_t count = kind == "broadcasts" ? 16 : options_.streams;
  OnThreads(count, [this, &desc, bytes](Stub& stub) { Execute(stub, desc, bytes); });
}

void Second::Count() {
  if (write(results_, "x", 1) != 1) _exit(0);  // the first caller is gone
}

template <typename Step>
void Second::OnThreads(uint32_t count, const Step& step) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([this, &step] {
      const std::unique_ptr<Stub> stub = v1::OperatorService::NewStub(
          grpc::CreateChannel(options_.address, grpc::InsecureChannelCredentials()));
      for (;;) step(*stub);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::unique_ptr<Second::Stub> Second::OwnConnection() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::OperatorService::NewStub(
      grpc::CreateCustomChannel(options_.address, grpc::InsecureChannelCredentials(), arguments));
}

void Second::Execute(Stub& stub, const v1::OperatorDesc& desc, size_t bytes) {
  grpc::ClientContext context;
  SetToken(context, options_.token);
  const auto stream = stub.ExecuteStream(&context);
  bool goes_on = stream->Write(Begin(1, desc, std::min(bytes, kChunkBytes)));
  Count();
  for (size_t sent = kChunkBytes; goes_on && sent < bytes; sent += kChunkBytes) {
    v1::ExecuteStreamRequest next;
    next.set_execution_id(1);
    AddChunk(sent, std::min(bytes - sent, kChunkBytes), next);
    goes_on = stream->Write(next);
    Count();
  }
  stream->WritesDone();
  v1::ExecuteStreamResponse response;
  while (stream->Read(&response)) {
    if (!response.has_status()) Count();
  }
  stream->Finish();
}

// Begins sixteen executions of 1 MiB and cancels them.
void Second::Cancel(Stub& stub) {
  grpc::ClientContext context;
  SetToken(context, options_.token);
  const auto stream = stub.ExecuteStream(&context);
  for (uint64_t id = 1; id <= 16; ++id) {
    if (!stream->Write(Begin(id, ArgMinOf(1 << 18), kChunkBytes))) break;
  }
  context.TryCancel();
  stream->Finish();
  Count();
}

// A connection sends 1 KiB of its 1 MiB ten times a second, so that it is never stalled.
void Second::UploadSlowly() {
  constexpr uint64_t kPieceBytes = 1024;
  struct Upload {
    std::unique_ptr<Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::ExecuteStreamRequest, v1::ExecuteStreamResponse>>
        stream;
    uint64_t sent = kPieceBytes;
  };
  std::vector<std::unique_ptr<Upload>> uploads;
  for (uint32_t i = 0; i < options_.connections; ++i) {
    auto upload = std::make_unique<Upload>();
    upload->stub = OwnConnection();
    SetToken(upload->context, options_.token);
    upload->stream = upload->stub->ExecuteStream(&upload->context);
    if (upload->stream->Write(Begin(1, ArgMinOf(1 << 18), kPieceBytes))) Count();
    uploads.push_back(std::move(upload));
  }
  for (;;) {
    absl::SleepFor(absl::Milliseconds(100));
    for (const auto& upload : uploads) {
      if (upload->sent + kPieceBytes >= kChunkBytes) continue;
      v1::ExecuteStreamRequest next;
      next.set_execution_id(1);
      AddChunk(upload->sent, kPieceBytes, next);
      if (upload->stream->Write(next)) upload->sent += kPieceBytes;
    }
  }
}

}  // namespace opmill
