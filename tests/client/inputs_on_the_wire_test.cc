// What the client sends for several inputs, as seen by a server in this process.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "opmill/v1/service.grpc.pb.h"
#include "tests/client/bytes_of.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr size_t kMiB = size_t{1} << 20;

// Ends every execution with statistics, and keeps the requests.
class Recorder : public v1::OperatorService::Service {
 public:
  grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*,
                             v1::GetServerInfoResponse* response) override {
    response->mutable_limits()->set_max_message_bytes(64 * kMiB);
    return grpc::Status::OK;
  }

  grpc::Status Execute(grpc::ServerContext*, const v1::ExecuteRequest* request,
                       grpc::ServerWriter<v1::ExecuteResponse>* writer) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    unary_.push_back(*request);
    if (failures_ > 0) return Unavailable();
    v1::ExecuteResponse response;
    response.mutable_started();
    response.mutable_statistics();
    writer->Write(response);
    return grpc::Status::OK;
  }

  grpc::Status ExecuteStream(grpc::ServerContext*,
                             grpc::ServerReaderWriter<v1::ExecuteStreamResponse,
                                                      v1::ExecuteStreamRequest>* stream) override {
    v1::ExecuteStreamRequest request;
    while (stream->Read(&request)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      streamed_.push_back(request);
      if (!request.end_of_inputs()) continue;
      if (failures_ > 0) return Unavailable();
      v1::ExecuteStreamResponse response;
      response.set_execution_id(request.execution_id());
      response.mutable_started();
      response.mutable_statistics();
      stream->Write(response);
    }
    return grpc::Status::OK;
  }

  void FailTheNext(int executions) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failures_ = executions;
  }
  std::vector<v1::ExecuteRequest> unary() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return unary_;
  }
  std::vector<v1::ExecuteStreamRequest> streamed() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return streamed_;
  }

 private:
  grpc::Status Unavailable() {
    --failures_;
    return {grpc::StatusCode::UNAVAILABLE, "Come again."};
  }

  std::mutex mutex_;
  std::vector<v1::ExecuteRequest> unary_;
  std::vector<v1::ExecuteStreamRequest> streamed_;
  int failures_ = 0;
};

class InputsOnTheWire : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { grpc_init(); }  // avoids gRPC's shutdown after each test

  InputsOnTheWire() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&recorder_);
    builder.SetMaxReceiveMessageSize(64 * kMiB);
    server_ = builder.BuildAndStart();
  }
  ~InputsOnTheWire() override { server_->Shutdown(); }

  Client Connect() const {
    absl::StatusOr<Client> client = Client::Connect(absl::StrCat("127.0.0.1:", port_));
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  int port_ = 0;
  Recorder recorder_;
  std::unique_ptr<grpc::Server> server_;
};

v1::OperatorDesc Add() {
  v1::OperatorDesc desc;
  desc.mutable_element_wise_add();
  return desc;
}

std::string Text(size_t size, char first) {
  std::string text(size, 0);
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(first + i % 23);
  return text;
}

// "0@0+5": 5 bytes of input 0 at offset 0.
std::vector<std::string> ChunksOf(const v1::ExecuteStreamRequest& request) {
  std::vector<std::string> chunks;
  for (const v1::TensorChunk& chunk : request.chunks()) {
    chunks.push_back(
        absl::StrCat(chunk.tensor_index(), "@", chunk.offset(), "+", chunk.data().size()));
  }
  return chunks;
}

// The bytes of each input, from the messages of one execution.
std::vector<std::string> Joined(const std::vector<v1::ExecuteStreamRequest>& requests,
                                uint64_t execution_id, size_t inputs) {
  std::vector<std::string> joined(inputs);
  for (const v1::ExecuteStreamRequest& request : requests) {
    if (request.execution_id() != execution_id) continue;
    for (const v1::TensorChunk& chunk : request.chunks()) {
      EXPECT_EQ(chunk.offset(), joined.at(chunk.tensor_index()).size());
      joined.at(chunk.tensor_index()) += chunk.data();
    }
  }
  return joined;
}

TEST_F(InputsOnTheWire, SmallOnesShareAMessageOfExecute) {
  const auto result = Connect().Execute(Add(), {BytesOf("first"), BytesOf("second")});
  ASSERT_TRUE(result.ok()) << result.status();
  const std::vector<v1::ExecuteRequest> requests = recorder_.unary();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_THAT(requests[0].inputs(), ElementsAre("first", "second"));
  EXPECT_THAT(recorder_.streamed(), IsEmpty());
}

TEST_F(InputsOnTheWire, LargeOnesFollowEachOtherInChunks) {
  const std::string a = Text(kMiB + 5, 'a');
  const std::string b = Text(2 * kMiB, 'A');
  uint64_t progress = 0;
  const auto result =
      Connect().Execute(Add(), {BytesOf(a), BytesOf(b)},
                        {.progress = [&](uint64_t sent_bytes) { progress = sent_bytes; }});
  ASSERT_TRUE(result.ok()) << result.status();
  const std::vector<v1::ExecuteStreamRequest> requests = recorder_.streamed();
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_TRUE(requests[0].has_begin());
  EXPECT_THAT(ChunksOf(requests[0]), ElementsAre("0@0+1048576"));
  EXPECT_THAT(ChunksOf(requests[1]), ElementsAre("0@1048576+5", "1@0+1048571"));
  EXPECT_THAT(ChunksOf(requests[2]), ElementsAre("1@1048571+1048576"));
  EXPECT_THAT(ChunksOf(requests[3]), ElementsAre("1@2097147+5"));
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].end_of_inputs(), i + 1 == requests.size()) << i;
  }
  EXPECT_THAT(Joined(requests, requests[0].execution_id(), 2), ElementsAre(a, b));
  EXPECT_EQ(progress, a.size() + b.size());
}

TEST_F(InputsOnTheWire, AChunkThatEndsWithAnInputLeavesNoEmptyOneBehind) {
  const std::string a = Text(kMiB, 'a');
  const std::string b = Text(kMiB, 'A');
  ASSERT_TRUE(Connect().Execute(Add(), {BytesOf(a), {}, BytesOf(b)}).ok());
  const std::vector<v1::ExecuteStreamRequest> requests = recorder_.streamed();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_THAT(ChunksOf(requests[0]), ElementsAre("0@0+1048576"));
  EXPECT_FALSE(requests[0].end_of_inputs());
  EXPECT_THAT(ChunksOf(requests[1]), ElementsAre("2@0+1048576"));
  EXPECT_TRUE(requests[1].end_of_inputs());
}

TEST_F(InputsOnTheWire, ExecutionsOfAStreamTakeTurns) {
  const std::string large = Text(3 * kMiB, 'a');
  const std::string small = Text(7, 'A');
  Client client = Connect();
  const auto stream = client.OpenStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  MemorySink sinks[2];
  std::vector<absl::Status> ends(2);
  const auto bytes = [](const std::string& text) {
    return InputBytes{BytesOf(text).data(), text.size(), nullptr};
  };
  const auto begin = [&](size_t i, const std::string& a, const std::string& b) {
    return (*stream)->Begin(
        Add(), {bytes(a), bytes(b)}, sinks[i],
        [&ends, i](const absl::StatusOr<v1::ExecutionStatistics>& end) { ends[i] = end.status(); });
  };
  const uint64_t first = begin(0, large, small);
  const uint64_t second = begin(1, small, large);
  ASSERT_TRUE((*stream)->Finish().ok());
  EXPECT_THAT(ends, ElementsAre(absl::OkStatus(), absl::OkStatus()));
  EXPECT_THAT(Joined(recorder_.streamed(), first, 2), ElementsAre(large, small));
  EXPECT_THAT(Joined(recorder_.streamed(), second, 2), ElementsAre(small, large));
}

TEST_F(InputsOnTheWire, ARetrySendsAllOfThemAgain) {
  const std::string large = Text(kMiB + 1, 'a');
  recorder_.FailTheNext(1);
  ASSERT_TRUE(Connect().Execute(Add(), {BytesOf("first"), BytesOf("second")}).ok());
  ASSERT_EQ(recorder_.unary().size(), 2u);
  EXPECT_THAT(recorder_.unary()[1].inputs(), ElementsAre("first", "second"));

  recorder_.FailTheNext(1);
  ASSERT_TRUE(Connect().Execute(Add(), {BytesOf(large), BytesOf("second")}).ok());
  const std::vector<v1::ExecuteStreamRequest> requests = recorder_.streamed();
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_THAT(Joined({requests.begin() + 2, requests.end()}, requests[2].execution_id(), 2),
              ElementsAre(large, "second"));
}

TEST_F(InputsOnTheWire, InputsThatMayBeOverwrittenAreSentOnce) {
  v1::SharedMemoryRange range;
  range.set_key("/inputs");
  range.set_byte_size(8);
  SharedTensors tensors = {.inputs = {range, range}, .outputs = {range}};
  tensors.outputs[0].set_key("inputs");
  tensors.outputs[0].set_offset(7);
  Client client = Connect();
  MemorySink sink;
  recorder_.FailTheNext(1);
  EXPECT_EQ(client.ExecuteInSharedMemory(Add(), tensors, sink).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(recorder_.unary().size(), 1u);

  tensors.outputs[0].set_offset(8);
  recorder_.FailTheNext(1);
  EXPECT_TRUE(client.ExecuteInSharedMemory(Add(), tensors, sink).ok());
  EXPECT_EQ(recorder_.unary().size(), 3u);
}

}  // namespace
}  // namespace opmill
