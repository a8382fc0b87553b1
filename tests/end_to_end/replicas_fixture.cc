#include "tests/end_to_end/replicas_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <span>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

namespace opmill {
namespace {

// An execution with one message, and one in chunks.
constexpr std::array<uint32_t, 2> kColumns = {1024, 1'000'000};

}  // namespace

v1::OperatorDesc ArgMax(uint32_t columns) {
  v1::OperatorDesc desc;
  v1::TensorDesc& input = *desc.mutable_arg_max()->mutable_input();
  input.set_data_type(v1::DATA_TYPE_UINT32);
  input.add_sizes(columns);
  desc.mutable_arg_max()->add_axes(0);
  desc.mutable_arg_max()->set_axis_direction(v1::AXIS_DIRECTION_INCREASING);
  return desc;
}

int BindToLoopback(uint16_t port) {
  const int bound = socket(AF_INET, SOCK_STREAM, 0);
  const int reuses = 1;  // old connections of the port may linger
  setsockopt(bound, SOL_SOCKET, SO_REUSEADDR, &reuses, sizeof(reuses));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  EXPECT_EQ(bind(bound, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return bound;
}

void Replicas::Start(size_t index) {
  // A restarted server uses its previous port.
  const auto or_any = [](const std::string& address) {
    return address.empty() ? std::string("127.0.0.1:0") : address;
  };
  auto server = ServerProcess::Start(
      {"--device=software", absl::StrCat("--address=", or_any(addresses_[index])),
       absl::StrCat("--metrics_address=", or_any(metrics_addresses_[index]))});
  ASSERT_TRUE(server.ok()) << server.status();
  servers_[index] = *std::move(server);
  addresses_[index] = servers_[index]->address();
  metrics_addresses_[index] = servers_[index]->metrics_address();
}

void Replicas::StartAll() {
  for (size_t i = 0; i < kReplicas; ++i) ASSERT_NO_FATAL_FAILURE(Start(i));
}

void Replicas::Kill(size_t index) {
  servers_[index]->Signal(SIGKILL);
  ASSERT_EQ(servers_[index]->WaitForExit(), -SIGKILL);
  uint32_t port = 0;
  const std::string& address = addresses_[index];
  ASSERT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  held_sockets_.push_back(BindToLoopback(static_cast<uint16_t>(port)));
}

Replicas::~Replicas() {
  for (const int held : held_sockets_) close(held);
}

uint64_t Replicas::ExecutedBy(size_t index) {
  absl::StatusOr<Client> client = Client::Connect(addresses_[index]);
  EXPECT_TRUE(client.ok()) << client.status();
  const auto statistics = client->GetStatistics();
  EXPECT_TRUE(statistics.ok()) << statistics.status();
  uint64_t count = 0;
  for (const auto& each : statistics->operators()) count += each.succeeded();
  return count;
}

void Replicas::Stop(size_t index) {
  servers_[index]->Signal(SIGTERM);
  ASSERT_EQ(servers_[index]->WaitForExit(), 0);
}

void Replicas::AwaitWork(size_t index, uint64_t least) {
  for (int tries = 0; ExecutedBy(index) < least && tries < 300; ++tries) {
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_GE(ExecutedBy(index), least) << index;
}

Load::Load(Client& client, Unavailable unavailable) : unavailable_(unavailable) {
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads_.emplace_back([this, &client, i] { Run(client, i); });
  }
}

void Load::Stop() {
  stopped_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Load::AwaitMore(int executions) {
  const int wanted = good_ + executions;
  while (good_ < wanted && failed_ == 0) absl::SleepFor(absl::Milliseconds(5));
}

std::string Load::failures() {
  std::lock_guard<std::mutex> lock(mutex_);
  return absl::StrJoin(failures_, "\n");
}

void Load::Run(Client& client, uint32_t index) {
  const uint32_t columns = kColumns[index % kColumns.size()];
  const uint32_t best = 7 + index;
  std::vector<uint32_t> values(columns);
  std::iota(values.begin(), values.end(), 1);
  values[best] = columns + 1;
  const v1::OperatorDesc desc = ArgMax(columns);
  while (!stopped_ && failed_ == 0) {
    const absl::StatusOr<ExecutionResult> result =
        client.Execute(desc, std::as_bytes(std::span(values)));
    uint32_t answer = 0;
    if (result.ok()) std::memcpy(&answer, result->outputs[0].bytes.data(), sizeof(answer));
    if (answer == best) {
      ++good_;
    } else if (unavailable_ == Unavailable::kIsCounted && absl::IsUnavailable(result.status())) {
      ++begun_again_;
    } else {
      ++failed_;
      std::lock_guard<std::mutex> lock(mutex_);
      failures_.push_back(result.ok() ? absl::StrCat(answer, " is not ", best)
                                      : result.status().ToString());
    }
  }
}

}  // namespace opmill
