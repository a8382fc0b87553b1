// The client against a real server.
#include "client/client.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/error.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/support/server_process.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClientTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    grpc_init();  // avoids gRPC's shutdown after each test, which may take 10 s
    auto server = ServerProcess::Start({"--device=reference"});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = server->release();
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  static Client Connect(const ClientOptions& options = {}) {
    absl::StatusOr<Client> client = Client::Connect(server_->address(), options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  static ServerProcess* server_;
};
ServerProcess* ClientTest::server_ = nullptr;

v1::TensorDesc Tensor(v1::DataType type, const std::vector<uint32_t>& sizes) {
  v1::TensorDesc desc;
  desc.set_data_type(type);
  for (const uint32_t size : sizes) desc.add_sizes(size);
  return desc;
}

v1::OperatorDesc Sum(const v1::TensorDesc& input, uint32_t axis) {
  v1::OperatorDesc desc;
  desc.mutable_reduce()->set_function(v1::REDUCE_FUNCTION_SUM);
  *desc.mutable_reduce()->mutable_input() = input;
  desc.mutable_reduce()->add_axes(axis);
  return desc;
}

// Hardmax over rows of one element: the output is as large as the input, and known.
v1::OperatorDesc HardmaxOfOnes(uint32_t rows) {
  v1::OperatorDesc desc;
  *desc.mutable_hardmax()->mutable_input() = Tensor(v1::DATA_TYPE_FLOAT32, {rows, 1});
  desc.mutable_hardmax()->add_axes(1);
  return desc;
}

std::vector<std::byte> Integers(size_t count, uint32_t value) {
  std::vector<std::byte> bytes(count * sizeof(value));
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(&bytes[i * sizeof(value)], &value, sizeof(value));
  }
  return bytes;
}

std::vector<uint32_t> IntegersIn(const std::vector<std::byte>& bytes) {
  std::vector<uint32_t> integers(bytes.size() / sizeof(uint32_t));
  std::memcpy(integers.data(), bytes.data(), bytes.size());
  return integers;
}

InputBytes Owned(std::vector<std::byte> bytes) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return {owner->data(), owner->size(), owner};
}

#if OPMILL_CPU_DEVICE
// VK_DRIVER_FILES hides all drivers, as on a machine without a GPU.
TEST(ClientOfTheProcessor, IsUsedWithoutADriver) {
  for (const char* device : {"--device=cpu", "--device=auto"}) {
    auto server = ServerProcess::Start(
        {device},
        {.environment = {"VK_DRIVER_FILES=/nowhere.json", "VK_ICD_FILENAMES=/nowhere.json"}});
    ASSERT_TRUE(server.ok()) << server.status();
    absl::StatusOr<Client> client = Client::Connect((*server)->address(), {});
    ASSERT_TRUE(client.ok()) << client.status();
    const auto info = client->GetServerInfo();
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->device().kind(), v1::DeviceInfo::KIND_CPU);
  }
}
#endif

TEST_F(ClientTest, QueriesServerInfo) {
  Client client = Connect();
  const auto info = client.GetServerInfo();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->device().kind(), v1::DeviceInfo::KIND_REFERENCE);
  EXPECT_GT(info->operators_size(), 0);
  EXPECT_EQ(*client.CheckHealth(), "SERVING");
  EXPECT_EQ(*client.CheckHealth("opmill.v1.OperatorService"), "SERVING");
  EXPECT_EQ(client.CheckHealth("nobody.Knows").status().code(), absl::StatusCode::kNotFound);
  const auto statistics = client.GetStatistics();
  ASSERT_TRUE(statistics.ok()) << statistics.status();
}

TEST_F(ClientTest, CompilesAndLearnsTheOutputs) {
  const auto response =
      Connect().Compile(Sum(Tensor(v1::DATA_TYPE_INT32, {3, 4}), 1), v1::FEATURE_LEVEL_5_0);
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->outputs_size(), 1);
  EXPECT_THAT(response->outputs(0).sizes(), ElementsAre(3, 1));
}

TEST_F(ClientTest, ExecutesSmallInputsInOneMessage) {
  const auto result =
      Connect().Execute(Sum(Tensor(v1::DATA_TYPE_UINT32, {2, 5}), 1), Integers(10, 7));
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->outputs.size(), 1u);
  EXPECT_THAT(result->outputs[0].desc.sizes(), ElementsAre(2, 1));
  EXPECT_THAT(IntegersIn(result->outputs[0].bytes), ElementsAre(35, 35));
}

TEST_F(ClientTest, ExecutesInSharedMemory) {
  const std::string key = absl::StrCat("/opmill-test-client-", getpid());
  const int segment = shm_open(key.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  ASSERT_GE(segment, 0);
  const absl::Cleanup remove = [&] {
    close(segment);
    shm_unlink(key.c_str());
  };
  const std::vector<std::byte> input = Integers(10, 7);
  ASSERT_EQ(pwrite(segment, input.data(), input.size(), 0), static_cast<ssize_t>(input.size()));
  ASSERT_EQ(ftruncate(segment, 48), 0);
  v1::SharedMemoryRange range;
  range.set_key(key);
  range.set_byte_size(40);
  SharedTensors tensors = {.inputs = {range}};
  const v1::OperatorDesc sum = Sum(Tensor(v1::DATA_TYPE_UINT32, {2, 5}), 1);
  Client client = Connect();
  MemorySink sent;
  ASSERT_TRUE(client.ExecuteInSharedMemory(sum, tensors, sent).ok());
  EXPECT_THAT(IntegersIn(sent.outputs()[0].bytes), ElementsAre(35, 35));

  range.set_offset(40);
  range.set_byte_size(8);
  tensors.outputs = {range};
  MemorySink shared;
  ASSERT_TRUE(client.ExecuteInSharedMemory(sum, tensors, shared).ok());
  std::vector<std::byte> output(8);
  ASSERT_EQ(pread(segment, output.data(), output.size(), 40), 8);
  EXPECT_THAT(IntegersIn(output), ElementsAre(35, 35));

  tensors.outputs[0].set_offset(41);
  const absl::Status refused = client.ExecuteInSharedMemory(sum, tensors, shared).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(FieldViolationsOf(refused).size(), 1u);
  EXPECT_EQ(FieldViolationsOf(refused)[0].field, "shared_outputs[0].byte_size");
}

TEST_F(ClientTest, ExecutesLargeInputsInChunks) {
  constexpr uint32_t kColumns = 1'500'001;
  uint64_t progress = 0;
  bool is_ascending = true;
  const auto result =
      Connect().Execute(Sum(Tensor(v1::DATA_TYPE_UINT32, {2, kColumns}), 1),
                        Integers(2 * kColumns, 3), {.progress = [&](uint64_t sent_bytes) {
                          is_ascending = is_ascending && sent_bytes > progress;
                          progress = sent_bytes;
                        }});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(IntegersIn(result->outputs[0].bytes), ElementsAre(3 * kColumns, 3 * kColumns));
  EXPECT_EQ(progress, 8u * kColumns);
  EXPECT_TRUE(is_ascending);
}

TEST_F(ClientTest, ReceivesLargeOutputs) {
  constexpr uint32_t kRows = 3'000'003;
  const auto result = Connect().Execute(HardmaxOfOnes(kRows), Integers(kRows, 0x40000000));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs[0].bytes, Integers(kRows, 0x3F800000));
}

TEST_F(ClientTest, KeepsToTheServersMessageLimit) {
  auto server = ServerProcess::Start({"--device=reference", "--max_message_bytes=65536"});
  ASSERT_TRUE(server.ok()) << server.status();
  absl::StatusOr<Client> client = Client::Connect((*server)->address());
  ASSERT_TRUE(client.ok()) << client.status();
  const auto desc = Sum(Tensor(v1::DATA_TYPE_UINT32, {1, 200'000}), 1);
  const auto result = client->Execute(desc, Integers(200'000, 1));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(IntegersIn(result->outputs[0].bytes), ElementsAre(200'000));

  MemorySink sink;
  EXPECT_EQ(client->ExecuteInOneMessage(desc, Owned(Integers(200'000, 1)), sink).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(ClientTest, KeepsTheServersSentenceAndField) {
  Client client = Connect();
  for (const uint32_t columns : {5u, 1'000'000u}) {
    const auto result = client.Execute(Sum(Tensor(v1::DATA_TYPE_UINT32, {2, columns}), 7),
                                       Integers(2 * size_t{columns}, 7));
    ASSERT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
    ASSERT_EQ(FieldViolationsOf(result.status()).size(), 1u);
    EXPECT_THAT(FieldViolationsOf(result.status())[0].field, HasSubstr("operator.reduce.axes[0]"));
    EXPECT_NE(ReasonOf(result.status()), std::nullopt);
  }
}

TEST_F(ClientTest, ReportsThatTheDeadlinePassed) {
  // The reference device needs longer for this.
  constexpr uint32_t kColumns = 8'000'000;
  const auto result = Connect().Execute(Sum(Tensor(v1::DATA_TYPE_UINT32, {1, kColumns}), 1),
                                        Integers(kColumns, 1), {.timeout = absl::Milliseconds(2)});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded) << result.status();
}

TEST_F(ClientTest, ReportsThatNoServerListens) {
  const absl::StatusOr<Client> client = Client::Connect("127.0.0.1:1");
  EXPECT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(client.status().message()),
              HasSubstr("No server answers at 127.0.0.1:1"));
}

// A sink that fails.
class FullDisk : public OutputSink {
 public:
  absl::Status Start(const v1::ExecutionStarted&) override { return absl::OkStatus(); }
  absl::Status Write(size_t, uint64_t, const Payload&) override {
    return absl::ResourceExhaustedError("The disk is full.");
  }
};

TEST_F(ClientTest, EndsAnExecutionWhoseSinkFails) {
  Client client = Connect();
  for (const uint32_t rows : {10u, 2'000'000u}) {
    FullDisk sink;
    const auto statistics =
        client.Execute(HardmaxOfOnes(rows), Owned(Integers(rows, 0x40000000)), sink);
    EXPECT_EQ(statistics.status().message(), "The disk is full.");
  }
}

// Collects the ends of executions.
class Ends {
 public:
  ExecutionStream::Done For(int name) {
    return [this, name](absl::StatusOr<v1::ExecutionStatistics> end) {
      std::lock_guard<std::mutex> lock(mutex_);
      EXPECT_EQ(ends_.count(name), 0u) << "a second end of " << name;
      ends_.emplace(name, end.status());
    };
  }
  std::map<int, absl::Status> Take() {
    std::lock_guard<std::mutex> lock(mutex_);
    return std::move(ends_);
  }

 private:
  std::mutex mutex_;
  std::map<int, absl::Status> ends_;
};

TEST_F(ClientTest, InterleavesManyExecutionsOnAStream) {
  constexpr int kCount = 60;
  Client client = Connect();
  auto stream = client.OpenStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  Ends ends;
  std::vector<MemorySink> sinks(kCount);
  std::vector<uint32_t> columns;
  for (int i = 0; i < kCount; ++i) {
    // Small executions, some of many chunks, and some that are refused.
    columns.push_back(i % 3 == 0 ? 5u : 600'000u + static_cast<uint32_t>(i));
    const uint32_t axis = i % 5 == 0 ? 9 : 1;
    (*stream)->Begin(Sum(Tensor(v1::DATA_TYPE_UINT32, {1, columns.back()}), axis),
                     Owned(Integers(columns.back(), static_cast<uint32_t>(i))),
                     sinks[static_cast<size_t>(i)], ends.For(i));
  }
  const absl::Status status = (*stream)->Finish();
  EXPECT_TRUE(status.ok()) << status;
  const std::map<int, absl::Status> ended = ends.Take();
  ASSERT_EQ(ended.size(), static_cast<size_t>(kCount));
  for (const auto& [i, end] : ended) {
    if (i % 5 == 0) {
      EXPECT_EQ(end.code(), absl::StatusCode::kInvalidArgument) << end;
      continue;
    }
    ASSERT_TRUE(end.ok()) << end;
    const size_t index = static_cast<size_t>(i);
    EXPECT_THAT(IntegersIn(sinks[index].outputs()[0].bytes),
                ElementsAre(columns[index] * static_cast<uint32_t>(i)));
  }
}

TEST_F(ClientTest, CancelsOneExecutionAndNoOther) {
  Client client = Connect();
  auto stream = client.OpenStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  Ends ends;
  MemorySink long_sink;
  MemorySink short_sink;
  constexpr uint32_t kColumns = 20'000'000;
  const uint64_t id = (*stream)->Begin(Sum(Tensor(v1::DATA_TYPE_UINT32, {1, kColumns}), 1),
                                       Owned(Integers(kColumns, 1)), long_sink, ends.For(1));
  (*stream)->Begin(Sum(Tensor(v1::DATA_TYPE_UINT32, {1, 3}), 1), Owned(Integers(3, 2)), short_sink,
                   ends.For(2));
  (*stream)->Cancel(id);
  (*stream)->Cancel(id + 100);
  EXPECT_TRUE((*stream)->Finish().ok());
  std::map<int, absl::Status> ended = ends.Take();
  EXPECT_EQ(ended[1].code(), absl::StatusCode::kCancelled) << ended[1];
  EXPECT_TRUE(ended[2].ok()) << ended[2];
}

// gRPC may hold a message until the next one. Nothing else flushes it here, not even a half-close.
TEST_F(ClientTest, SendsMessagesBeforeACancelledExecution) {
  std::atomic<int> ends{0};
  MemorySink kept;
  MemorySink cancelled;
  Client client = Connect();
  auto stream = client.OpenStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  const v1::OperatorDesc desc = Sum(Tensor(v1::DATA_TYPE_UINT32, {1, 3}), 1);
  const InputBytes input = Owned(Integers(3, 2));
  constexpr int kRounds = 200;
  for (int i = 1; i <= kRounds; ++i) {
    (*stream)->Begin(desc, input, kept, [&](const absl::StatusOr<v1::ExecutionStatistics>& end) {
      EXPECT_TRUE(end.ok()) << end.status();
      ++ends;
    });
    const uint64_t id = (*stream)->Begin(
        desc, input, cancelled, [&](const absl::StatusOr<v1::ExecutionStatistics>&) { ++ends; });
    (*stream)->Cancel(id);
    const absl::Time patience = absl::Now() + absl::Seconds(20);
    while (ends < 2 * i) {
      ASSERT_LT(absl::Now(), patience) << "round " << i;
      std::this_thread::yield();
    }
  }
  EXPECT_TRUE((*stream)->Finish().ok());
}

TEST_F(ClientTest, BeginsTheNextExecutionFromTheEndOfOne) {
  Client client = Connect();
  auto stream = client.OpenStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  const v1::OperatorDesc desc = Sum(Tensor(v1::DATA_TYPE_UINT32, {1, 3}), 1);
  const InputBytes input = Owned(Integers(3, 2));
  MemorySink sink;
  std::atomic<int> left{200};
  ExecutionStream::Done again = [&](const absl::StatusOr<v1::ExecutionStatistics>& end) {
    EXPECT_TRUE(end.ok()) << end.status();
    if (--left > 0) (*stream)->Begin(desc, input, sink, again);
  };
  (*stream)->Begin(desc, input, sink, again);
  while (left > 0) std::this_thread::yield();
  EXPECT_TRUE((*stream)->Finish().ok());
}

TEST_F(ClientTest, EndsExecutionsWhenAStreamIsDestroyed) {
  Client client = Connect();
  Ends ends;
  MemorySink sink;
  {
    auto stream = client.OpenStream();
    ASSERT_TRUE(stream.ok()) << stream.status();
    constexpr uint32_t kColumns = 20'000'000;
    (*stream)->Begin(Sum(Tensor(v1::DATA_TYPE_UINT32, {1, kColumns}), 1),
                     Owned(Integers(kColumns, 1)), sink, ends.For(1));
  }
  EXPECT_EQ(ends.Take()[1].code(), absl::StatusCode::kCancelled);
}

TEST_F(ClientTest, ReleasesItsInputs) {
  auto bytes = std::make_shared<const std::vector<std::byte>>(Integers(2'000'000, 1));
  const std::weak_ptr<const std::vector<std::byte>> watched = bytes;
  {
    Client client = Connect();
    MemorySink sink;
    const auto statistics = client.Execute(Sum(Tensor(v1::DATA_TYPE_UINT32, {2'000'000}), 0),
                                           {bytes->data(), bytes->size(), bytes}, sink);
    ASSERT_TRUE(statistics.ok()) << statistics.status();
    bytes.reset();
    for (int i = 0; i < 1000 && !watched.expired(); ++i) absl::SleepFor(absl::Milliseconds(10));
    EXPECT_TRUE(watched.expired());
  }
}

TEST_F(ClientTest, EndsEveryExecutionWhenTheServerDies) {
  auto server = ServerProcess::Start({"--device=reference"});
  ASSERT_TRUE(server.ok()) << server.status();
  absl::StatusOr<Client> client = Client::Connect((*server)->address());
  ASSERT_TRUE(client.ok()) << client.status();
  auto stream = client->OpenStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  Ends ends;
  std::vector<MemorySink> sinks(8);
  for (int i = 0; i < 8; ++i) {
    (*stream)->Begin(Sum(Tensor(v1::DATA_TYPE_UINT32, {1, 4'000'000}), 1),
                     Owned(Integers(4'000'000, 1)), sinks[static_cast<size_t>(i)], ends.For(i));
  }
  server->reset();
  EXPECT_EQ((*stream)->Finish().code(), absl::StatusCode::kUnavailable);
  MemorySink sink;
  (*stream)->Begin(Sum(Tensor(v1::DATA_TYPE_UINT32, {1}), 0), Owned(Integers(1, 1)), sink,
                   ends.For(8));
  const std::map<int, absl::Status> ended = ends.Take();
  EXPECT_EQ(ended.size(), 9u);
  for (const auto& [name, end] : ended) {
    EXPECT_TRUE(end.ok() || end.code() == absl::StatusCode::kUnavailable) << end;
  }
}

}  // namespace
}  // namespace opmill
