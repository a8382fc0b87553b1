// How much one stream may affect others, and how much it may hold.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "tests/end_to_end/stream_fixture.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;

class StreamLimits : public StreamTest {
 protected:
  // The latencies of `count` small executions, one after the other, each on its own stream.
  std::vector<absl::Duration> Latencies(int count) {
    std::vector<absl::Duration> latencies;
    StreamCaller caller(stub());
    for (int i = 0; i < count; ++i) {
      const absl::Time start = absl::Now();
      EXPECT_TRUE(caller.Begin(1, SumOf(1000)));
      EXPECT_TRUE(caller.ReadEnd().has_statistics());
      latencies.push_back(absl::Now() - start);
    }
    caller.WritesDone();
    EXPECT_TRUE(caller.Finish().ok());
    std::sort(latencies.begin(), latencies.end());
    return latencies;
  }
};

TEST_F(StreamLimits, ASlowReaderSlowsOnlyItself) {
  StartServer();
  StreamCaller slow(stub());
  constexpr uint32_t kCount = 4 << 20;
  constexpr int kExecutions = 4;
  for (int i = 0; i < kExecutions; ++i) ASSERT_TRUE(slow.Begin(i, HardmaxOf(kCount)));
  WaitForStatistics([](const v1::GetStatisticsResponse& statistics) {
    return statistics.in_flight().streaming() == kExecutions;
  });
  Latencies(1);  // compiles
  const std::vector<absl::Duration> others = Latencies(100);
  std::printf("beside a slow reader: p50 %s, most %s\n", absl::FormatDuration(others[50]).c_str(),
              absl::FormatDuration(others.back()).c_str());
  EXPECT_LT(others[50], absl::Milliseconds(250));
  EXPECT_LT(others.back(), absl::Seconds(3));
  EXPECT_EQ(Statistics().in_flight().streaming(), static_cast<uint64_t>(kExecutions));
  // Now it reads the result: a 1 at the first maximum, 0 elsewhere.
  slow.WritesDone();
  std::vector<std::string> outputs(kExecutions);
  while (const auto response = slow.Read()) {
    for (const v1::TensorChunk& chunk : response->chunks()) {
      outputs[response->execution_id()] += chunk.data();
    }
  }
  std::string expected(uint64_t{kCount} * 4, '\0');
  expected[2] = '\x80';
  expected[3] = '\x3F';
  for (const std::string& output : outputs) EXPECT_TRUE(output == expected);
  EXPECT_TRUE(slow.Finish().ok());
}

TEST_F(StreamLimits, AFastCallerIsSlowedDownAndNotRefused) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--max_executions_per_stream=4"},
        std::vector<std::string>{"--max_executions=4"},
        std::vector<std::string>{"--max_bytes_in_flight=1000000"}}) {
    SCOPED_TRACE(flags[0]);
    StartServer(flags);
    constexpr uint64_t kExecutions = 400;
    StreamCaller caller(stub());
    std::thread writer([&caller] {
      for (uint64_t id = 0; id < kExecutions; ++id) {
        ASSERT_TRUE(caller.Begin(id, HardmaxOf(25000), 60000));
        ASSERT_TRUE(caller.SendZeros(id, 60000, 40000));
      }
      caller.WritesDone();
    });
    uint64_t succeeded = 0;
    while (const auto response = caller.Read()) {
      if (response->has_statistics()) ++succeeded;
      EXPECT_FALSE(response->has_status()) << response->status().ShortDebugString();
    }
    writer.join();
    EXPECT_EQ(succeeded, kExecutions);
    EXPECT_TRUE(caller.Finish().ok());
    WaitUntilIdle();
  }
}

TEST_F(StreamLimits, ABeginBlockedByItsOwnPartialUploadsIsRefused) {
  StartServer({"--max_executions_per_stream=3"});
  StreamCaller caller(stub());
  for (uint64_t id = 0; id < 3; ++id) ASSERT_TRUE(caller.Begin(id, SumOf(1000), 100));
  const absl::Time start = absl::Now();
  ASSERT_TRUE(caller.Begin(3, SumOf(1000)));
  const v1::ExecuteStreamResponse refused = caller.ReadEnd();
  EXPECT_GT(absl::Now() - start, absl::Milliseconds(1500));
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
  EXPECT_EQ(refused.execution_id(), 3u);
  EXPECT_EQ(refused.status().code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.status().message(),
            "The stream has 3 executions (max_executions_per_stream) under way.");
  const auto retry = DetailOf<google::rpc::RetryInfo>(refused.status());
  ASSERT_TRUE(retry.has_value());
  EXPECT_EQ(retry->retry_delay().nanos(), 500'000'000);
  // The others continued to wait for their input.
  for (uint64_t id = 0; id < 3; ++id) caller.SendZeros(id, 100, 3900);
  caller.WritesDone();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(caller.ReadEnd().has_statistics());
  EXPECT_TRUE(caller.Finish().ok());
}

TEST_F(StreamLimits, ABeginThatWaitsForRoomKeepsItsTimeout) {
  StartServer({"--max_executions_per_stream=1"});
  StreamCaller caller(stub());
  ASSERT_TRUE(caller.Begin(0, SumOf(1000), 100));
  ASSERT_TRUE(caller.Begin(1, SumOf(1000), 100, absl::Milliseconds(200)));
  const v1::ExecuteStreamResponse late = caller.ReadEnd();
  EXPECT_EQ(late.execution_id(), 1u);
  EXPECT_EQ(late.status().code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  caller.SendZeros(0, 100, 3900);
  EXPECT_TRUE(caller.ReadEnd().has_statistics());
  caller.WritesDone();
  EXPECT_TRUE(caller.Finish().ok());
}

TEST_F(StreamLimits, ACallThatIsCancelledWhileABeginWaitsLeavesNothing) {
  StartServer({"--max_executions_per_stream=1"});
  for (int i = 0; i < 50; ++i) {
    StreamCaller caller(stub());
    ASSERT_TRUE(caller.Begin(0, SumOf(1000), 100));
    ASSERT_TRUE(caller.Begin(1, SumOf(1000), 100));
    absl::SleepFor(absl::Milliseconds(i));
    caller.TryCancel();
    EXPECT_EQ(caller.Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  WaitUntilIdle();
  ExpectServes();
}

TEST_F(StreamLimits, WhatNeverFitsIsRefusedAtOnce) {
  StartServer({"--max_tensor_bytes=1000000", "--max_bytes_in_flight=1500000"});
  StreamCaller caller(stub());
  const auto refusal = [&caller](const v1::OperatorDesc& desc) {
    const absl::Time start = absl::Now();
    EXPECT_TRUE(caller.Begin(1, desc, 4));
    const v1::ExecuteStreamResponse end = caller.ReadEnd();
    EXPECT_LT(absl::Now() - start, absl::Milliseconds(1500));  // others wait for two seconds
    EXPECT_EQ(end.status().code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_FALSE(DetailOf<google::rpc::RetryInfo>(end.status()).has_value());
    return end.status().message();
  };
  EXPECT_EQ(refusal(SumOf(250001)),
            "A tensor of 1000004 bytes is larger than max_tensor_bytes (1000000).");
  EXPECT_EQ(refusal(HardmaxOf(200000)),
            "The execution needs 1600000 bytes for its inputs and outputs, more than "
            "max_bytes_in_flight (1500000).");
}

TEST_F(StreamLimits, AStreamBeyondTheLimitIsRefusedUntilAnotherEnds) {
  StartServer({"--max_streams=1"});
  {
    StreamCaller first(stub());
    first.Begin(1, SumOf(5));
    EXPECT_TRUE(first.ReadEnd().has_statistics());
    const grpc::Status refused = StreamCaller(stub()).Finish();
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(refused.error_message(), "The server has 1 ExecuteStream calls (max_streams) open.");
  }
  WaitUntilIdle();
  ExpectServes();
}

TEST_F(StreamLimits, MissingInputEndsTheExecutionButNotTheStream) {
  StartServer({"--stall_timeout=1s"});
  StreamCaller caller(stub());
  const absl::Time start = absl::Now();
  ASSERT_TRUE(caller.Begin(1, SumOf(1000), 400));
  // Any number of bytes counts as progress.
  absl::SleepFor(absl::Milliseconds(700));
  ASSERT_TRUE(caller.SendZeros(1, 400, 4));
  const v1::ExecuteStreamResponse late = caller.ReadEnd();
  EXPECT_GT(absl::Now() - start, absl::Milliseconds(1600));
  EXPECT_EQ(late.execution_id(), 1u);
  EXPECT_EQ(late.status().code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(late.status().message(),
            "No input has come for 1s (stall_timeout), and some of it is missing.");
  caller.SendZeros(1, 404, 3596);  // ignored
  ASSERT_TRUE(caller.Begin(2, SumOf(1000)));
  EXPECT_TRUE(caller.ReadEnd().has_statistics());
  caller.WritesDone();
  EXPECT_TRUE(caller.Finish().ok());
}

TEST_F(StreamLimits, ACallerThatDoesNotReadIsDisconnected) {
  StartServer({"--stall_timeout=1s"});
  {
    StreamCaller caller(stub());
    ASSERT_TRUE(caller.Begin(1, HardmaxOf(4 << 20)));
    grpc::ClientContext context;
    v1::ExecuteRequest request;
    *request.mutable_operator_() = HardmaxOf(4 << 20);
    request.add_inputs(std::string(16 << 20, '\0'));
    const auto reader = stub().Execute(&context, request);
    WaitForStatistics([](const v1::GetStatisticsResponse& statistics) {
      return statistics.in_flight().streaming() == 2;
    });
    WaitUntilIdle();  // although neither has read anything or disconnected
    EXPECT_FALSE(caller.Finish().ok());
    v1::ExecuteResponse response;
    while (reader->Read(&response)) {
    }
    EXPECT_FALSE(reader->Finish().ok());
  }
  for (const char* rpc : {"Execute", "ExecuteStream"}) {
    EXPECT_TRUE(server()
                    .WaitForLine(absl::StrCat("\"event\":\"execute\",\"rpc\":\"", rpc, "\""))
                    .has_value());
  }
  EXPECT_TRUE(server()
                  .WaitForLine("The caller has read none of its results for 1s (stall_timeout).")
                  .has_value());
  ExpectServes();
}

TEST_F(StreamLimits, AConnectionBeyondTheLimitIsClosedAndMayRetry) {
  StartServer({"--max_connections=2"});
  ExpectServes();  // on a connection that stays open
  const auto connect = [this] {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(server().address(), grpc::InsecureChannelCredentials(),
                                     arguments);
  };
  const auto connects = [](grpc::Channel& channel, absl::Duration patience) {
    return channel.WaitForConnected(absl::ToChronoTime(absl::Now() + patience));
  };
  auto second = connect();
  ASSERT_TRUE(connects(*second, kPatience));
  // Without a call, its slot would be given to the third connection.
  grpc::ClientContext context;
  v1::GetServerInfoResponse info;
  ASSERT_TRUE(v1::OperatorService::NewStub(second)->GetServerInfo(&context, {}, &info).ok());
  auto third = connect();
  EXPECT_FALSE(connects(*third, absl::Seconds(1)));
  EXPECT_TRUE(server().WaitForLine("\"event\":\"refuse_connections\"").has_value());
  ExpectServes();
  second.reset();
  EXPECT_TRUE(connects(*third, kPatience));
}

TEST_F(StreamLimits, AnInvalidMessageEndsOnlyItsStream) {
  StartServer();
  StreamCaller other(stub());
  other.Begin(1, SumOf(1000), 100);
  StreamCaller caller(stub());
  v1::ExecuteStreamRequest request;
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
      2, "this is no BeginExecution");
  caller.Write(request);
  const grpc::Status status = caller.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("is not a protobuf message"));
  other.SendZeros(1, 100, 3900);
  EXPECT_TRUE(other.ReadEnd().has_statistics());
}

TEST_F(StreamLimits, ALargeUploadDoesNotBlockSmallOnes) {
  StartServer();
  Latencies(20);
  const absl::Duration alone = Latencies(200)[100];
  constexpr uint64_t kBytes = uint64_t{256} << 20;
  absl::Duration beside;
  {
    StreamCaller large(stub());
    std::atomic<bool> uploaded = false;
    std::thread uploader([&] {
      EXPECT_TRUE(large.Begin(1, SumOf(kBytes / 4)));
      uploaded = true;
    });
    std::vector<absl::Duration> latencies;
    while (!uploaded) {
      for (const absl::Duration each : Latencies(5)) latencies.push_back(each);
    }
    uploader.join();
    std::sort(latencies.begin(), latencies.end());
    beside = latencies[latencies.size() / 2];
    std::printf("small executions: p50 %s alone, %s beside an upload of 256 MiB (%zu of them)\n",
                absl::FormatDuration(alone).c_str(), absl::FormatDuration(beside).c_str(),
                latencies.size());
    EXPECT_TRUE(large.ReadEnd().has_statistics());
  }
  EXPECT_LT(beside, 20 * alone + absl::Milliseconds(50));
}

}  // namespace
}  // namespace opmill
