// How much one caller can delay another: one makes small calls, one after the other, alone and then
// beside a second caller that does all it can. Starts the server itself and prints a line for each
// kind of second caller.
//
//   fairness [--seconds=8] [--server_flags=--device=cpu] [--kinds=hardmax,broadcasts]
//
// Both callers are on this machine and compete with the server for its processors. The second one
// therefore runs in a process of its own at the lowest priority (--nice). The server's own times
// are printed too: from the arrival of a call to its result.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/client.h"
#include "grpcpp/grpcpp.h"
#include "opmill/v1/service.grpc.pb.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/server_process.h"

ABSL_FLAG(double, seconds, 8, "How long each measurement takes.");
ABSL_FLAG(int, nice, 19, "The priority of the second caller's process.");
ABSL_FLAG(uint32_t, streams, 64, "Streams of the second caller.");
ABSL_FLAG(uint32_t, connections, 1000, "Slow connections of the second caller.");
ABSL_FLAG(uint64_t, tensor_mib, 64, "The tensor that is streamed.");
ABSL_FLAG(uint32_t, broadcast_log2, 31, "Elements of a broadcast tensor, as a power of two.");
ABSL_FLAG(std::vector<std::string>, kinds,
          std::vector<std::string>({"hardmax", "uploads", "cancels", "broadcasts"}),
          "What the second caller does.");
ABSL_FLAG(std::vector<std::string>, server_flags, std::vector<std::string>({"--device=cpu"}),
          "Flags of the server.");

namespace opmill {
namespace {

constexpr char kFirst[] = "first-token-0123456789abcdef";
constexpr char kSecond[] = "second-token-0123456789abcdef";

// The size of the largest input.
const std::vector<std::byte>& Ones() {
  static const std::vector<std::byte>* const bytes =
      new std::vector<std::byte>(absl::GetFlag(FLAGS_tensor_mib) << 20, std::byte{1});
  return *bytes;
}

v1::OperatorDesc ArgMin(uint32_t count) {
  v1::OperatorDesc desc;
  v1::TensorDesc& input = *desc.mutable_arg_min()->mutable_input();
  input.set_data_type(v1::DATA_TYPE_FLOAT32);
  input.add_sizes(count);
  desc.mutable_arg_min()->add_axes(0);
  desc.mutable_arg_min()->set_axis_direction(v1::AXIS_DIRECTION_INCREASING);
  return desc;
}

v1::OperatorDesc Hardmax() {
  v1::OperatorDesc desc;
  v1::TensorDesc& input = *desc.mutable_hardmax()->mutable_input();
  input.set_data_type(v1::DATA_TYPE_FLOAT32);
  input.add_sizes(static_cast<uint32_t>(Ones().size() / 4 / 1024));
  input.add_sizes(1024);
  desc.mutable_hardmax()->add_axes(1);
  return desc;
}

// Many elements that share one location in memory.
v1::OperatorDesc Broadcast() {
  v1::OperatorDesc desc;
  desc.mutable_reduce()->set_function(v1::REDUCE_FUNCTION_SUM);
  v1::TensorDesc& input = *desc.mutable_reduce()->mutable_input();
  input.set_data_type(v1::DATA_TYPE_FLOAT32);
  input.add_sizes(1u << 15);
  input.add_sizes(1u << (absl::GetFlag(FLAGS_broadcast_log2) - 15));
  for (int i = 0; i < 2; ++i) input.add_strides(0);
  for (const uint32_t axis : {0, 1}) desc.mutable_reduce()->add_axes(axis);
  return desc;
}

class NoSink : public OutputSink {
 public:
  absl::Status Start(const v1::ExecutionStarted&) override { return absl::OkStatus(); }
  absl::Status Write(size_t, uint64_t, const Payload&) override { return absl::OkStatus(); }
};

InputBytes InputOf(size_t size) { return {Ones().data(), size, nullptr}; }

absl::StatusOr<Client> Connect(const std::string& address, const char* token) {
  return Client::Connect(address, {.token = token, .connect_timeout = absl::Seconds(60)});
}

// The second caller, which ends with its process. Writes a byte for each result to `results`.
class Second {
 public:
  Second(std::string address, int results) : address_(std::move(address)), results_(results) {}

  void Run(const std::string& kind) {
    if (kind == "uploads") return UploadSlowly();
    if (kind == "cancels") return OnThreads(8, [this](Client&) { Cancel(); });
    const v1::OperatorDesc desc = kind == "hardmax" ? Hardmax() : Broadcast();
    const size_t bytes = kind == "hardmax" ? Ones().size() : 4;
    OnThreads(absl::GetFlag(FLAGS_streams), [this, &desc, bytes](Client& client) {
      NoSink sink;
      if (client.Execute(desc, InputOf(bytes), sink).ok()) Count();
    });
  }

 private:
  void Count() {
    if (write(results_, "x", 1) != 1) _exit(0);  // the first caller is gone
  }

  template <typename Step>
  void OnThreads(uint32_t count, const Step& step) {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < count; ++i) {
      threads.emplace_back([this, &step] {
        absl::StatusOr<Client> client = Connect(address_, kSecond);
        while (client.ok()) step(*client);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::unique_ptr<v1::OperatorService::Stub> OwnConnection() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::OperatorService::NewStub(
        grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments));
  }

  static v1::ExecuteStreamRequest Begin(uint64_t id, uint32_t count, size_t bytes) {
    v1::ExecuteStreamRequest request;
    request.set_execution_id(id);
    *request.mutable_begin()->mutable_operator_() = ArgMin(count);
    request.add_chunks()->set_data(std::string(bytes, '\1'));
    return request;
  }

  // Begins sixteen executions of 1 MiB and cancels them.
  void Cancel() {
    static thread_local const auto stub = OwnConnection();
    grpc::ClientContext context;
    context.AddMetadata("authorization", absl::StrCat("Bearer ", kSecond));
    const auto stream = stub->ExecuteStream(&context);
    for (uint64_t id = 1; id <= 16 && stream->Write(Begin(id, 1 << 18, size_t{1} << 20)); ++id) {
    }
    context.TryCancel();
    stream->Finish();
    Count();
  }

  // A connection sends 1 KiB of its 1 MiB ten times a second, so that it is never stalled.
  void UploadSlowly() {
    struct Upload {
      std::unique_ptr<v1::OperatorService::Stub> stub;
      grpc::ClientContext context;
      std::unique_ptr<grpc::ClientReaderWriter<v1::ExecuteStreamRequest, v1::ExecuteStreamResponse>>
          stream;
      uint64_t sent = 1024;
    };
    std::vector<std::unique_ptr<Upload>> uploads;
    for (uint32_t i = 0; i < absl::GetFlag(FLAGS_connections); ++i) {
      auto upload = std::make_unique<Upload>();
      upload->stub = OwnConnection();
      upload->context.AddMetadata("authorization", absl::StrCat("Bearer ", kSecond));
      upload->stream = upload->stub->ExecuteStream(&upload->context);
      if (upload->stream->Write(Begin(1, 1 << 18, 1024))) Count();
      uploads.push_back(std::move(upload));
    }
    for (;;) {
      absl::SleepFor(absl::Milliseconds(100));
      for (const auto& upload : uploads) {
        v1::ExecuteStreamRequest next;
        next.set_execution_id(1);
        v1::TensorChunk& chunk = *next.add_chunks();
        chunk.set_offset(upload->sent);
        chunk.set_data(std::string(1024, '\1'));
        if (upload->sent < (1 << 20) - 1024 && upload->stream->Write(next)) upload->sent += 1024;
      }
    }
  }

  const std::string address_;
  const int results_;
};

// The process of the second caller.
class SecondProcess {
 public:
  SecondProcess(const std::string& binary, const std::string& kind, const std::string& address) {
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) _exit(1);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      const std::vector<std::string> arguments = {
          binary,
          absl::StrCat("--nice=", absl::GetFlag(FLAGS_nice)),
          absl::StrCat("--streams=", absl::GetFlag(FLAGS_streams)),
          absl::StrCat("--connections=", absl::GetFlag(FLAGS_connections)),
          absl::StrCat("--tensor_mib=", absl::GetFlag(FLAGS_tensor_mib)),
          absl::StrCat("--broadcast_log2=", absl::GetFlag(FLAGS_broadcast_log2)),
          "second",
          kind,
          address,
          absl::StrCat(ends[1])};
      std::vector<char*> argv;
      for (const std::string& argument : arguments)
        argv.push_back(const_cast<char*>(argument.data()));
      argv.push_back(nullptr);
      execv(binary.c_str(), argv.data());
      _exit(1);
    }
    close(ends[1]);
    results_ = ends[0];
    reader_ = std::thread([this] {
      char bytes[256];
      for (ssize_t got = 0; (got = read(results_, bytes, sizeof(bytes))) > 0;) {
        count_ += static_cast<uint64_t>(got);
      }
    });
  }
  ~SecondProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    reader_.join();
    close(results_);
  }
  uint64_t count() const { return count_; }

 private:
  pid_t pid_ = -1;
  int results_ = -1;
  std::atomic<uint64_t> count_ = 0;
  std::thread reader_;
};

struct Latencies {
  std::vector<double> seen;    // by the caller, in seconds
  std::vector<double> server;  // by the server
  uint64_t failed = 0;
  std::string failure;
  double per_second = 0;  // results of the second caller
  double at(double part) const { return At(seen, part); }
  double server_at(double part) const { return At(server, part); }

 private:
  static double At(const std::vector<double>& sorted, double part) {
    if (sorted.empty()) return 0;
    return sorted[std::min(sorted.size() - 1, static_cast<size_t>(part * sorted.size()))] * 1e3;
  }
};

double SecondsOf(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) + duration.nanos() * 1e-9;
}

Latencies Measure(Client& client, const SecondProcess* second, bool calls) {
  Latencies latencies;
  const uint64_t before = second == nullptr ? 0 : second->count();
  const absl::Time begun = absl::Now();
  const absl::Time end = begun + absl::Seconds(absl::GetFlag(FLAGS_seconds));
  const v1::OperatorDesc desc = ArgMin(1024);
  while (absl::Now() < end) {
    if (!calls) {
      absl::SleepFor(absl::Milliseconds(10));
      continue;
    }
    NoSink sink;
    const absl::Time started = absl::Now();
    const auto result = client.Execute(desc, InputOf(4096), sink);
    if (!result.ok()) {
      ++latencies.failed;
      latencies.failure = std::string(result.status().message());
      continue;
    }
    latencies.seen.push_back(absl::ToDoubleSeconds(absl::Now() - started));
    latencies.server.push_back(SecondsOf(result->upload()) + SecondsOf(result->queue()) +
                               SecondsOf(result->compute()));
  }
  std::sort(latencies.seen.begin(), latencies.seen.end());
  std::sort(latencies.server.begin(), latencies.server.end());
  if (second != nullptr) {
    latencies.per_second =
        static_cast<double>(second->count() - before) / absl::ToDoubleSeconds(absl::Now() - begun);
  }
  return latencies;
}

int RunAll(const std::string& binary) {
  const ScratchDirectory folder;
  const std::string tokens = absl::StrCat(folder.utf8(), "/tokens");
  std::ofstream(tokens) << "first " << kFirst << "\nsecond " << kSecond << "\n";
  bool failed = false;
  for (const std::string& kind : absl::GetFlag(FLAGS_kinds)) {
    std::vector<std::string> flags = absl::GetFlag(FLAGS_server_flags);
    flags.push_back(absl::StrCat("--token_file=", tokens));
    flags.push_back("--max_connections=2048");
    auto server = ServerProcess::Start(std::move(flags));
    if (!server.ok()) {
      std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
      return 1;
    }
    absl::StatusOr<Client> first = Connect((*server)->address(), kFirst);
    if (!first.ok()) {
      std::fprintf(stderr, "%s\n", first.status().ToString().c_str());
      return 1;
    }
    const Latencies alone = Measure(*first, nullptr, true);
    const SecondProcess second(binary, kind, (*server)->address());
    // Waits until the second caller has results.
    const uint64_t begun = kind == "uploads" ? absl::GetFlag(FLAGS_connections) : 2;
    const absl::Time patience = absl::Now() + absl::Minutes(1);
    while (second.count() < begun && absl::Now() < patience) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    const Latencies without = Measure(*first, &second, false);
    const Latencies beside = Measure(*first, &second, true);
    const Latencies without_again = Measure(*first, &second, false);
    const double other = (without.per_second + without_again.per_second) / 2;
    std::printf(
        "%-10s first alone: p50 %.3f ms, p99 %.3f ms (server %.3f, %.3f); beside: p50 %.3f ms, p99 "
        "%.3f ms (server %.3f, %.3f), %zu calls, %lu failed %s; p99 ratio %.1f (server %.1f)\n"
        "           second alone %.2f/s, beside %.2f/s: %.0f %%\n",
        kind.c_str(), alone.at(0.5), alone.at(0.99), alone.server_at(0.5), alone.server_at(0.99),
        beside.at(0.5), beside.at(0.99), beside.server_at(0.5), beside.server_at(0.99),
        beside.seen.size(), beside.failed, beside.failure.c_str(), beside.at(0.99) / alone.at(0.99),
        beside.server_at(0.99) / alone.server_at(0.99), other, beside.per_second,
        other == 0 ? 0 : beside.per_second / other * 100);
    std::fflush(stdout);
    // The first caller is never refused, and the second one makes progress.
    failed = failed || beside.failed > 0 || beside.seen.empty() || second.count() == 0;
  }
  return failed ? 1 : 0;
}

int Main(int argc, char** argv) {
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  signal(SIGPIPE, SIG_IGN);
  if (rest.size() == 5) {
    setpriority(PRIO_PROCESS, 0, absl::GetFlag(FLAGS_nice));
    Second(rest[3], std::stoi(rest[4])).Run(rest[2]);
    return 0;
  }
  return RunAll(argv[0]);
}

}  // namespace
}  // namespace opmill

int main(int argc, char** argv) { return opmill::Main(argc, argv); }
