#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "tests/end_to_end/overload_load.h"
#include "tests/end_to_end/stream_fixture.h"

namespace opmill {
namespace {

constexpr absl::Duration kBreath = absl::Milliseconds(50);

// Connects to a server on 127.0.0.1.
int ConnectSocket(absl::string_view address) {
  uint32_t port = 0;
  if (!absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) return -1;
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(descriptor, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0) {
    return descriptor;
  }
  close(descriptor);
  return -1;
}

// True if the peer has closed the connection. Reads pending data first.
bool IsClosed(int descriptor) {
  char bytes[4096];
  for (;;) {
    const ssize_t count = recv(descriptor, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (count > 0) continue;
    return count == 0 || (errno != EAGAIN && errno != EINTR);
  }
}

// 64 KiB in, 16 MiB out.
v1::OperatorDesc LargeResult() {
  v1::OperatorDesc desc;
  v1::TensorDesc& input = *desc.mutable_hardmax()->mutable_input();
  input.set_data_type(v1::DATA_TYPE_FLOAT32);
  for (const uint32_t size : {256, 16384}) input.add_sizes(size);
  for (const uint32_t stride : {0, 1}) input.add_strides(stride);
  desc.mutable_hardmax()->add_axes(1);
  return desc;
}

}  // namespace

Attackers::Attackers(const std::string& address, uint64_t max_message_bytes)
    : max_message_bytes_(max_message_bytes) {
  const auto start = [&](int threads, auto attack) {
    for (int i = 0; i < threads; ++i) {
      stubs_.push_back(ConnectTo(address));
      threads_.emplace_back([attack, i, &stub = *stubs_.back()] { attack(stub, i); });
    }
  };
  using Stub = v1::OperatorService::Stub;
  start(4, [this](Stub& stub, int) { BeginAndNeverSend(stub); });
  start(2, [this](Stub& stub, int) { NeverRead(stub); });
  start(4, [this](Stub& stub, int) {
    SendLargeMessages(stub, max_message_bytes_ - (uint64_t{1} << 20));
  });
  start(1, [this](Stub& stub, int) {
    SendLargeMessages(stub, max_message_bytes_ + (uint64_t{1} << 20));
  });
  start(2, [this](Stub& stub, int i) {
    CompileOperators(stub, static_cast<uint32_t>(1 + i * 1'000'000));
  });
  threads_.emplace_back([this, address] { Connect(address); });
}

Attackers::~Attackers() {
  stopping_ = true;
  for (std::thread& thread : threads_) thread.join();
}

// Streams that reserve memory and then send nothing.
void Attackers::BeginAndNeverSend(v1::OperatorService::Stub& stub) {
  constexpr uint64_t kExecutions = 4;
  constexpr uint32_t kUploadElements = 512 << 10;  // 2 MiB
  while (!stopping_) {
    StreamCaller caller(stub);
    for (uint64_t id = 0; id < kExecutions; ++id) caller.Begin(id, SumOf(kUploadElements), 4);
    for (uint64_t i = 0; i < kExecutions && !stopping_; ++i) {
      const auto end = caller.Read();
      if (!end.has_value()) break;
      if (absl::StrContains(end->status().message(), "(stall_timeout)")) ++counts_.stalled_uploads;
    }
    caller.TryCancel();
    absl::SleepFor(kBreath);
  }
}

// Requests much and reads nothing, until the server disconnects it.
void Attackers::NeverRead(v1::OperatorService::Stub& stub) {
  while (!stopping_) {
    StreamCaller caller(stub);
    bool is_open = true;
    for (uint64_t id = 0; id < 3 && is_open; ++id) is_open = caller.Begin(id, LargeResult());
    while (is_open && !stopping_) {
      absl::SleepFor(kBreath);
      is_open = caller.Cancel(99);  // no effect: no such execution
    }
    if (!is_open) ++counts_.stalled_readers;
  }
}

void Attackers::SendLargeMessages(v1::OperatorService::Stub& stub, uint64_t bytes) {
  v1::ExecuteRequest request;
  *request.mutable_operator_() = SumOf(static_cast<uint32_t>(bytes / sizeof(float)));
  request.add_inputs(std::string(bytes / sizeof(float) * sizeof(float), '\0'));
  while (!stopping_) {
    grpc::ClientContext context;
    const auto reader = stub.Execute(&context, request);
    v1::ExecuteResponse response;
    while (reader->Read(&response)) {
    }
    const grpc::Status status = reader->Finish();
    ++counts_.large_messages;
    if (bytes > max_message_bytes_ &&
        absl::StrContains(status.error_message(), "larger than max")) {
      ++counts_.oversized_refused;
    }
    absl::SleepFor(kBreath);
  }
}

// All different, so that none is in the cache.
void Attackers::CompileOperators(v1::OperatorService::Stub& stub, uint32_t first) {
  for (uint32_t length = first; !stopping_; ++length) {
    v1::CompileOperatorRequest request;
    v1::TopKDesc& top_k = *request.mutable_operator_()->mutable_top_k();
    const v1::DataType types[] = {v1::DATA_TYPE_FLOAT32, v1::DATA_TYPE_FLOAT16, v1::DATA_TYPE_INT32,
                                  v1::DATA_TYPE_UINT8};
    top_k.mutable_input()->set_data_type(types[length % std::size(types)]);
    top_k.mutable_input()->add_sizes(1000 + length);
    top_k.set_k(1 + length % 100);
    top_k.set_axis_direction(v1::AXIS_DIRECTION_DECREASING);
    grpc::ClientContext context;
    v1::CompileOperatorResponse response;
    if (stub.CompileOperator(&context, request, &response).ok()) ++counts_.operators_compiled;
    absl::SleepFor(absl::Milliseconds(5));
  }
}

// Holds as many connections as possible; half of them send data that is not HTTP/2.
void Attackers::Connect(const std::string& address) {
  constexpr size_t kMost = 200;
  std::vector<int> held;
  while (!stopping_) {
    for (int i = 0; i < 20 && held.size() < kMost; ++i) {
      const int descriptor = ConnectSocket(address);
      if (descriptor < 0) break;
      ++counts_.connections_made;
      if (i % 2 == 0) send(descriptor, "hello?\r\n", 8, MSG_NOSIGNAL);
      held.push_back(descriptor);
    }
    std::erase_if(held, [this](int descriptor) {
      if (!IsClosed(descriptor)) return false;
      ++counts_.connections_closed;
      close(descriptor);
      return true;
    });
    absl::SleepFor(kBreath);
  }
  for (const int descriptor : held) close(descriptor);
}

}  // namespace opmill
