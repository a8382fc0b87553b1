// A real server, and callers that see its streams as they are on the wire.
#ifndef OPMILL_TESTS_END_TO_END_STREAM_FIXTURE_H_
#define OPMILL_TESTS_END_TO_END_STREAM_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "opmill/v1/service.grpc.pb.h"
#include "tests/support/server_process.h"

namespace opmill {

inline constexpr absl::Duration kPatience = absl::Seconds(30);  // only a bug takes this long

// One ExecuteStream call. One thread writes, one reads.
class StreamCaller {
 public:
  explicit StreamCaller(v1::OperatorService::Stub& stub,
                        absl::Duration timeout = absl::InfiniteDuration());
  ~StreamCaller();  // cancels the call unless Finish was called

  bool Write(const v1::ExecuteStreamRequest& request) { return stream_->Write(request); }
  // Sends a begin together with the first `bytes` zeros of its input; by default all of them.
  bool Begin(uint64_t id, const v1::OperatorDesc& desc,
             std::optional<uint64_t> bytes = std::nullopt,
             absl::Duration timeout = absl::InfiniteDuration());
  bool SendZeros(uint64_t id, uint64_t offset, uint64_t bytes);
  bool Cancel(uint64_t id);
  void WritesDone() { stream_->WritesDone(); }

  std::optional<v1::ExecuteStreamResponse> Read();
  // Reads until any execution ends, and returns its end. Drops earlier chunks.
  v1::ExecuteStreamResponse ReadEnd();
  // Reads the remaining responses, and returns the status of the stream.
  grpc::Status Finish();
  void TryCancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ExecuteStreamRequest, v1::ExecuteStreamResponse>>
      stream_;
  bool finished_ = false;
};

class StreamTest : public ::testing::Test {
 protected:
  // Starts the server on the software device.
  void StartServer(std::vector<std::string> flags = {});
  void TearDown() override;

  v1::OperatorService::Stub& stub() { return *stub_; }
  ServerProcess& server() { return *server_; }
  v1::GetStatisticsResponse Statistics();
  void WaitForStatistics(const std::function<bool(const v1::GetStatisticsResponse&)>& condition);
  // Waits until nothing is in progress and all reservations are released.
  void WaitUntilIdle();
  // Expects that a small execution on a new stream succeeds.
  void ExpectServes();

 private:
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<v1::OperatorService::Stub> stub_;
};

// `count` FLOAT32 elements in, one out.
v1::OperatorDesc SumOf(uint32_t count);
// The output is as large as the input.
v1::OperatorDesc HardmaxOf(uint32_t count);
// Has 16 MiB of input, repeated by strides so that a software device needs some seconds.
v1::OperatorDesc SlowSum();

uint64_t InputBytesOf(const v1::OperatorDesc& desc);

template <typename Detail>
std::optional<Detail> DetailOf(const google::rpc::Status& status) {
  for (const auto& any : status.details()) {
    Detail detail;
    if (any.UnpackTo(&detail)) return detail;
  }
  return std::nullopt;
}
// The field that the status names, or "".
std::string FieldOf(const google::rpc::Status& status);

}  // namespace opmill

#endif  // OPMILL_TESTS_END_TO_END_STREAM_FIXTURE_H_
