// A real server and callers that see its streams as they are on the wire.
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

inline constexpr absl::Duration kPatience = absl::Seconds(30);  // that only a fault takes

// One ExecuteStream call. One thread writes, one reads.
class StreamCaller {
 public:
  explicit StreamCaller(v1::OperatorService::Stub& stub,
                        absl::Duration timeout = absl::InfiniteDuration());
  ~StreamCaller();  // cancels the call where Finish has not been called

  bool Write(const v1::ExecuteStreamRequest& request) { return stream_->Write(request); }
  // A begin whose first `bytes` zeros come with it; all of them where none are given.
  bool Begin(uint64_t id, const v1::OperatorDesc& desc,
             std::optional<uint64_t> bytes = std::nullopt,
             absl::Duration timeout = absl::InfiniteDuration());
  bool SendZeros(uint64_t id, uint64_t offset, uint64_t bytes);
  bool Cancel(uint64_t id);
  void WritesDone() { stream_->WritesDone(); }

  std::optional<v1::ExecuteStreamResponse> Read();
  // Reads until an execution ends, whichever, and answers with its end. The chunks before it are
  // dropped.
  v1::ExecuteStreamResponse ReadEnd();
  // Reads what is left, and answers how the stream ended.
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
  // On the software device.
  void StartServer(std::vector<std::string> flags = {});
  void TearDown() override;

  v1::OperatorService::Stub& stub() { return *stub_; }
  ServerProcess& server() { return *server_; }
  v1::GetStatisticsResponse Statistics();
  void WaitForStatistics(const std::function<bool(const v1::GetStatisticsResponse&)>& condition);
  // Nothing is under way, and all that was reserved is given back.
  void WaitUntilIdle();
  // One small execution on a stream of its own goes well.
  void ExpectServes();

 private:
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<v1::OperatorService::Stub> stub_;
};

// `count` FLOAT32 elements in, one out.
v1::OperatorDesc SumOf(uint32_t count);
// As many bytes out as in.
v1::OperatorDesc HardmaxOf(uint32_t count);
// 16 MiB in, as often repeated as takes a software device some seconds to sum.
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
// The field that it names, or "".
std::string FieldOf(const google::rpc::Status& status);

}  // namespace opmill

#endif  // OPMILL_TESTS_END_TO_END_STREAM_FIXTURE_H_
