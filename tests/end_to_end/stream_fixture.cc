#include "tests/end_to_end/stream_fixture.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "kernels/descriptor/tensor.h"
#include "server/api/request_decoder.h"

namespace opmill {

StreamCaller::StreamCaller(v1::OperatorService::Stub& stub, absl::Duration timeout) {
  if (timeout < absl::InfiniteDuration()) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }
  stream_ = stub.ExecuteStream(&context_);
}

StreamCaller::~StreamCaller() {
  if (finished_) return;
  TryCancel();
  Finish();
}

bool StreamCaller::Begin(uint64_t id, const v1::OperatorDesc& desc, std::optional<uint64_t> bytes,
                         absl::Duration timeout) {
  v1::ExecuteStreamRequest request;
  request.set_execution_id(id);
  *request.mutable_begin()->mutable_operator_() = desc;
  if (timeout < absl::InfiniteDuration()) {
    request.mutable_begin()->mutable_timeout()->set_nanos(
        static_cast<int32_t>(absl::ToInt64Nanoseconds(timeout)));
  }
  const uint64_t all = InputBytesOf(desc);
  constexpr uint64_t kChunk = 1 << 20;
  const uint64_t wanted = bytes.value_or(all);
  request.add_chunks()->set_data(std::string(std::min(wanted, kChunk), '\0'));
  bool written = Write(request);
  for (uint64_t sent = kChunk; written && sent < wanted; sent += kChunk) {
    written = SendZeros(id, sent, std::min(kChunk, wanted - sent));
  }
  return written;
}

bool StreamCaller::SendZeros(uint64_t id, uint64_t offset, uint64_t bytes) {
  v1::ExecuteStreamRequest request;
  request.set_execution_id(id);
  v1::TensorChunk& chunk = *request.add_chunks();
  chunk.set_offset(offset);
  chunk.set_data(std::string(bytes, '\0'));
  return Write(request);
}

bool StreamCaller::Cancel(uint64_t id) {
  v1::ExecuteStreamRequest request;
  request.set_execution_id(id);
  request.mutable_cancel();
  return Write(request);
}

std::optional<v1::ExecuteStreamResponse> StreamCaller::Read() {
  v1::ExecuteStreamResponse response;
  if (!stream_->Read(&response)) return std::nullopt;
  return response;
}

v1::ExecuteStreamResponse StreamCaller::ReadEnd() {
  while (std::optional<v1::ExecuteStreamResponse> response = Read()) {
    if (response->end_case() != v1::ExecuteStreamResponse::END_NOT_SET) return *response;
  }
  ADD_FAILURE() << "The stream ended first.";
  return {};
}

grpc::Status StreamCaller::Finish() {
  finished_ = true;
  while (Read().has_value()) {
  }
  return stream_->Finish();
}

void StreamTest::StartServer(std::vector<std::string> flags) {
  flags.push_back("--device=software");
  auto server = ServerProcess::Start(std::move(flags));
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  stub_ = v1::OperatorService::NewStub(
      grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(), arguments));
}

void StreamTest::TearDown() {
  if (server_ == nullptr || server_->WaitForExit(absl::ZeroDuration()).has_value()) return;
  WaitUntilIdle();
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->WaitForExit(), 0);
}

v1::GetStatisticsResponse StreamTest::Statistics() {
  grpc::ClientContext context;
  v1::GetStatisticsResponse response;
  const grpc::Status status = stub_->GetStatistics(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

void StreamTest::WaitForStatistics(
    const std::function<bool(const v1::GetStatisticsResponse&)>& condition) {
  const absl::Time end = absl::Now() + kPatience;
  v1::GetStatisticsResponse statistics = Statistics();
  while (!condition(statistics)) {
    ASSERT_LT(absl::Now(), end) << statistics.in_flight().ShortDebugString() << "; device "
                                << statistics.device().ShortDebugString();
    absl::SleepFor(absl::Milliseconds(5));
    statistics = Statistics();
  }
}

void StreamTest::WaitUntilIdle() {
  // The device keeps some memory for itself after the first run.
  constexpr uint64_t kDeviceBytes = uint64_t{8} << 20;
  WaitForStatistics([](const v1::GetStatisticsResponse& statistics) {
    return statistics.in_flight().ByteSizeLong() == 0 &&  // all zero
           statistics.device().buffer_bytes_in_use() <= kDeviceBytes;
  });
}

void StreamTest::ExpectServes() {
  StreamCaller caller(*stub_);
  caller.Begin(1, SumOf(5));
  const v1::ExecuteStreamResponse end = caller.ReadEnd();
  EXPECT_TRUE(end.has_statistics()) << end.ShortDebugString();
  caller.WritesDone();
  EXPECT_TRUE(caller.Finish().ok());
}

namespace {

v1::TensorDesc FloatTensor(const std::vector<uint32_t>& sizes,
                           const std::vector<uint32_t>& strides) {
  v1::TensorDesc floats;
  EncodeTensor({DataType::kFloat32, sizes, strides}, floats);
  return floats;
}

}  // namespace

v1::OperatorDesc SumOf(uint32_t count) {
  v1::OperatorDesc desc;
  desc.mutable_reduce()->set_function(v1::REDUCE_FUNCTION_SUM);
  *desc.mutable_reduce()->mutable_input() = FloatTensor({count}, {});
  desc.mutable_reduce()->add_axes(0);
  return desc;
}

v1::OperatorDesc HardmaxOf(uint32_t count) {
  v1::OperatorDesc desc;
  *desc.mutable_hardmax()->mutable_input() = FloatTensor({count}, {});
  desc.mutable_hardmax()->add_axes(0);
  return desc;
}

v1::OperatorDesc SlowSum() {
  v1::OperatorDesc desc;
  desc.mutable_reduce()->set_function(v1::REDUCE_FUNCTION_SUM);
  *desc.mutable_reduce()->mutable_input() = FloatTensor({1000, 1 << 22}, {0, 1});
  desc.mutable_reduce()->add_axes(0);
  desc.mutable_reduce()->add_axes(1);
  return desc;
}

uint64_t InputBytesOf(const v1::OperatorDesc& desc) {
  const auto decoded = DecodeOperator(desc, std::nullopt);
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return SpannedBytes(decoded->inputs[0]);
}

std::string FieldOf(const google::rpc::Status& status) {
  const auto bad = DetailOf<google::rpc::BadRequest>(status);
  return bad.has_value() ? bad->field_violations(0).field() : "";
}

}  // namespace opmill
