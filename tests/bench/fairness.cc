// How much one caller can delay another: one makes small calls, one after the other, alone and then
// beside a second caller that does all it can. Starts the server itself and prints a line of JSON
// for each kind of second caller. `./dev bench fairness` makes a table of it.
//
//   fairness [--seconds=1.5] [--rounds=5] [--kinds=hardmax,cancels] [--servers=opmill,bare]
//
// Both callers are on this machine and compete with the server for its processors. The second one
// therefore runs in a process of its own at the lowest priority (--nice). The server's own times
// are measured too: from the arrival of a call to its result. What remains is the transport and the
// machine; the control measures it: the same calls beside the same load with a server without
// logic. For it, `broadcasts`, which are computation alone, are a process that uses all processors.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "opmill/v1/service.grpc.pb.h"
#include "tests/bench/fairness_second.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/server_process.h"

using opmill::SecondOptions;

ABSL_FLAG(double, seconds, 1.5, "How long each measurement takes.");
ABSL_FLAG(int, rounds, 5, "How often each is repeated.");
ABSL_FLAG(int, nice, 19, "The priority of the second caller's process.");
ABSL_FLAG(uint32_t, streams, SecondOptions().streams, "Streams of the second caller.");
ABSL_FLAG(uint32_t, connections, SecondOptions().connections, "Its slow connections.");
ABSL_FLAG(uint64_t, tensor_mib, SecondOptions().tensor_bytes >> 20, "The tensor that it streams.");
ABSL_FLAG(uint32_t, broadcast_log2, SecondOptions().broadcast_log2,
          "Elements of a broadcast tensor, as a power of two.");
ABSL_FLAG(std::vector<std::string>, kinds,
          std::vector<std::string>({"hardmax", "uploads", "cancels", "broadcasts", "small"}),
          "What the second caller does.");
ABSL_FLAG(std::vector<std::string>, servers, std::vector<std::string>({"opmill", "bare"}),
          "opmill, and the control, bare.");
ABSL_FLAG(std::vector<std::string>, server_flags, std::vector<std::string>({"--device=cpu"}),
          "Flags of the server.");

namespace opmill {
namespace {

constexpr char kFirst[] = "first-token-0123456789abcdef";
constexpr char kSecond[] = "second-token-0123456789abcdef";
// Until what one phase has left in progress has ended.
constexpr absl::Duration kSettle = absl::Milliseconds(300);

// The process of the second caller. It stands still while it is paused.
class SecondProcess {
 public:
  SecondProcess(const std::string& binary, const std::string& kind, const std::string& address) {
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) _exit(1);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      std::vector<std::string> arguments = {
          binary,
          absl::StrCat("--nice=", kind == "busy" ? 0 : absl::GetFlag(FLAGS_nice)),
          absl::StrCat("--streams=", absl::GetFlag(FLAGS_streams)),
          absl::StrCat("--connections=", absl::GetFlag(FLAGS_connections)),
          absl::StrCat("--tensor_mib=", absl::GetFlag(FLAGS_tensor_mib)),
          absl::StrCat("--broadcast_log2=", absl::GetFlag(FLAGS_broadcast_log2)),
          "second",
          kind,
          address,
          absl::StrCat(ends[1])};
      std::vector<char*> argv;
      for (std::string& argument : arguments) argv.push_back(argument.data());
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
  void Pause() const { kill(pid_, SIGSTOP); }
  void Resume() const { kill(pid_, SIGCONT); }
  uint64_t count() const { return count_; }
  bool WaitForCount(uint64_t count) const {
    const absl::Time patience = absl::Now() + absl::Minutes(2);
    while (count_ < count && absl::Now() < patience) absl::SleepFor(absl::Milliseconds(10));
    return count_ >= count;
  }

 private:
  pid_t pid_ = -1;
  int results_ = -1;
  std::atomic<uint64_t> count_ = 0;
  std::thread reader_;
};

double SecondsOf(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) + duration.nanos() * 1e-9;
}

double Quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(part * static_cast<double>(values.size())))];
}

// What the first caller sees.
struct Calls {
  std::vector<double> seconds;
  std::vector<double> server_seconds;
  uint64_t failed = 0;
  std::string failure;
};

class First {
 public:
  explicit First(const std::string& address)
      : stub_(v1::OperatorService::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {
    *request_.mutable_operator_() = ArgMinOf(1024);
    request_.add_inputs(std::string(4096, '\1'));
  }

  Calls CallFor(absl::Duration duration) {
    Calls calls;
    const absl::Time end = absl::Now() + duration;
    for (absl::Time begun = absl::Now(); begun < end; begun = absl::Now()) {
      grpc::ClientContext context;
      SetToken(context, kFirst);
      const auto stream = stub_->Execute(&context, request_);
      v1::ExecuteResponse response;
      v1::ExecutionStatistics times;
      while (stream->Read(&response)) times = response.statistics();
      const grpc::Status status = stream->Finish();
      if (status.ok()) {
        calls.seconds.push_back(absl::ToDoubleSeconds(absl::Now() - begun));
        calls.server_seconds.push_back(SecondsOf(times.upload()) + SecondsOf(times.queue()) +
                                       SecondsOf(times.compute()));
      } else {
        ++calls.failed;
        calls.failure = status.error_message();
      }
    }
    return calls;
  }

  double LongestSlice() {
    grpc::ClientContext context;
    SetToken(context, kFirst);
    v1::GetStatisticsResponse statistics;
    if (!stub_->GetStatistics(&context, {}, &statistics).ok()) return 0;
    return SecondsOf(statistics.device().longest_submission());
  }

 private:
  const std::unique_ptr<v1::OperatorService::Stub> stub_;
  v1::ExecuteRequest request_;
};

// Numbers of each round.
class Table {
 public:
  void Add(const std::string& name, double value) {
    for (auto& [known, values] : columns_) {
      if (known == name) return values.push_back(value);
    }
    columns_.push_back({name, {value}});
  }
  void Add(const std::string& name, const Calls& calls) {
    Add(name + "_p50_s", Quantile(calls.seconds, 0.5));
    Add(name + "_p99_s", Quantile(calls.seconds, 0.99));
    Add(name + "_server_p99_s", Quantile(calls.server_seconds, 0.99));
  }
  std::string Json() const {
    return absl::StrJoin(columns_, ", ", [](std::string* text, const auto& column) {
      absl::StrAppend(text, "\"", column.first, "\": [",
                      absl::StrJoin(column.second, ", ",
                                    [](std::string* to, double value) {
                                      absl::StrAppendFormat(to, "%.6g", value);
                                    }),
                      "]");
    });
  }

 private:
  std::vector<std::pair<std::string, std::vector<double>>> columns_;
};

// Whether the first caller is never refused, and the second one goes on.
bool Measure(const std::string& binary, const std::string& kind, const std::string& server,
             const std::string& address) {
  const absl::Duration duration = absl::Seconds(absl::GetFlag(FLAGS_seconds));
  const bool computes_on = kind == "broadcasts";  // also while the caller is paused
  const std::string load = computes_on && server == "bare" ? "busy" : kind;
  First first(address);
  first.CallFor(absl::Milliseconds(200));  // warms up
  std::optional<SecondProcess> second;
  Table table;
  uint64_t failed = 0;
  std::string failure;
  bool is_good = true;
  const auto rate = [&second](const auto& step) {
    const uint64_t before = second->count();
    const absl::Time begun = absl::Now();
    step();
    return static_cast<double>(second->count() - before) /
           absl::ToDoubleSeconds(absl::Now() - begun);
  };
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    table.Add("alone", first.CallFor(duration));
    if (second.has_value()) {
      second->Resume();
    } else {
      second.emplace(binary, load, address);
      is_good =
          second->WaitForCount(load == "uploads" ? absl::GetFlag(FLAGS_connections) : 2) && is_good;
    }
    absl::SleepFor(kSettle);
    table.Add("second_alone_per_s", rate([&] { absl::SleepFor(duration); }));
    Calls beside;
    table.Add("second_beside_per_s", rate([&] { beside = first.CallFor(duration); }));
    table.Add("beside", beside);
    failed += beside.failed;
    if (beside.failed > 0) failure = beside.failure;
    is_good = is_good && beside.failed == 0 && !beside.seconds.empty();
    if (computes_on) {
      second.reset();
    } else {
      second->Pause();
    }
    absl::SleepFor(kSettle);
  }
  std::printf(
      "{\"kind\": \"%s\", \"server\": \"%s\", %s, \"longest_slice_s\": %.6g, "
      "\"failed\": %lu}\n",
      kind.c_str(), server.c_str(), table.Json().c_str(),
      server == "bare" ? 0 : first.LongestSlice(), failed);
  std::fflush(stdout);
  if (failed > 0) std::fprintf(stderr, "%s: %s\n", kind.c_str(), failure.c_str());
  return is_good;
}

int RunAll(const std::string& binary) {
  const ScratchDirectory folder;
  const std::string tokens = absl::StrCat(folder.utf8(), "/tokens");
  std::ofstream(tokens) << "first " << kFirst << "\nsecond " << kSecond << "\n";
  bool is_good = true;
  for (const std::string& kind : absl::GetFlag(FLAGS_kinds)) {
    for (const std::string& kind_of_server : absl::GetFlag(FLAGS_servers)) {
      std::vector<std::string> flags;
      ServerProcess::Surroundings surroundings;
      if (kind_of_server == "bare") {
        surroundings.binary = OPMILL_BARE_SERVER_PATH;
      } else {
        flags = absl::GetFlag(FLAGS_server_flags);
        flags.push_back(absl::StrCat("--token_file=", tokens));
        // More than the second caller has, also after what is left for others.
        for (const char* limit : {"connections", "streams", "executions"}) {
          flags.push_back(absl::StrCat("--max_", limit, "=2048"));
        }
      }
      auto server = ServerProcess::Start(std::move(flags), surroundings);
      if (!server.ok()) {
        std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
        return 1;
      }
      is_good = Measure(binary, kind, kind_of_server, (*server)->address()) && is_good;
    }
  }
  return is_good ? 0 : 1;
}

int Main(int argc, char** argv) {
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  signal(SIGPIPE, SIG_IGN);
  if (rest.size() != 5) return RunAll(argv[0]);
  setpriority(PRIO_PROCESS, 0, absl::GetFlag(FLAGS_nice));
  Second({.address = rest[3],
          .token = kSecond,
          .streams = absl::GetFlag(FLAGS_streams),
          .connections = absl::GetFlag(FLAGS_connections),
          .tensor_bytes = absl::GetFlag(FLAGS_tensor_mib) << 20,
          .broadcast_log2 = absl::GetFlag(FLAGS_broadcast_log2)},
         std::stoi(rest[4]))
      .Run(rest[2]);
  return 0;
}

}  // namespace
}  // namespace opmill

int main(int argc, char** argv) { return opmill::Main(argc, argv); }
