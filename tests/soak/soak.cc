// Runs real servers under mixed load for any duration: valid and invalid requests of all sizes,
// slow and crashing callers, tensors that stay. Every result is checked. One server runs for the
// whole time, and its memory and handles are measured while it is idle. Another one is killed and
// restarted repeatedly. Under a third one the driver fails, and the server must continue, on its
// standby and then with a new device.
//
// The exit status is 0 if all results were right, every error was explained, and nothing grew.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/error.h"
#include "grpc/grpc.h"
#include "tests/conformance/random.h"
#include "tests/soak/gate.h"
#include "tests/soak/ledger.h"
#include "tests/soak/soak_case.h"
#include "tests/soak/vitals.h"
#include "tests/soak/workload.h"
#include "tests/support/driver_faults.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/server_process.h"

ABSL_FLAG(double, minutes, 1, "Duration.");
ABSL_FLAG(uint64_t, seed, 0, "Random seed; 0: a new one each time. It is printed.");
ABSL_FLAG(std::string, device, "software", "Device of the servers.");
ABSL_FLAG(std::string, standby, "on",
          "Standby of the server that loses its device: with on its calls must not fail, with off "
          "they may get UNAVAILABLE.");
ABSL_FLAG(uint64_t, cases, 40, "Number of operators and shapes, whose kernels are compiled first.");
ABSL_FLAG(bool, large, true, "Include tensors of 64 MiB.");
ABSL_FLAG(double, max_growth_mib_per_minute, 2, "Bound on the growth of memory at rest.");
ABSL_FLAG(double, max_growth_mib_per_loss, 4, "The same, for the server that loses its device.");
ABSL_FLAG(std::string, client_of, "",
          "Runs as a caller of the server at this address, until it is killed.");
ABSL_FLAG(uint64_t, start, 0, "For such a caller: the start of its random sequence.");

extern char** environ;

namespace opmill {
namespace {

constexpr int kSteadyCallers = 4;
constexpr int kMortalCallers = 2;
constexpr int kLosingCallers = 2;
constexpr absl::Duration kPatience = absl::Seconds(300);
// Of rest. Servers return memory that they keep for reuse after 5 s, and check what the allocator
// has kept every 3 s.
constexpr absl::Duration kUntilMemoryIsReturned = absl::Seconds(9);

absl::StatusOr<std::unique_ptr<ServerProcess>> StartServer(const std::string& address,
                                                           const ScratchDirectory& cache,
                                                           std::vector<std::string> environment,
                                                           const std::string& standby) {
  return ServerProcess::Start(
      {
          absl::StrCat("--address=", address),
          absl::StrCat("--device=", absl::GetFlag(FLAGS_device)),
          absl::StrCat("--standby=", standby),
          "--small_work=gpu",
          absl::StrCat("--shader_cache=", cache.utf8()),
          absl::StrCat("--max_idle_bytes=", 128 << 20),
          // No execution is aborted.
          absl::StrCat("--drain_timeout=", absl::FormatDuration(kPatience)),
      },
      {.environment = std::move(environment), .patience = kPatience});
}

// The processor and the reference have none.
bool HasDriver() {
  return absl::GetFlag(FLAGS_device) != "reference" && absl::GetFlag(FLAGS_device) != "cpu";
}

// Sleeps in short intervals, and returns early when told to stop.
void SleepUntil(absl::Time time, const std::atomic<bool>& over) {
  while (absl::Now() < time && !over) absl::SleepFor(absl::Milliseconds(50));
}

class Soak {
 public:
  explicit Soak(uint64_t seed)
      : seed_(seed), cases_(seed, absl::GetFlag(FLAGS_cases), absl::GetFlag(FLAGS_large)) {}

  bool Run(absl::Duration length) {
    for (std::unique_ptr<ServerProcess>* server : {&steady_, &mortal_, &losing_}) {
      const bool is_losing = server == &losing_;
      if (is_losing && !HasDriver()) continue;
      auto started = StartServer("127.0.0.1:0", cache_,
                                 is_losing ? faults_.environment() : std::vector<std::string>(),
                                 is_losing ? absl::GetFlag(FLAGS_standby) : "off");
      if (!started.ok()) return Refuse(started.status());
      *server = *std::move(started);
    }
    const std::string mortal_address = mortal_->address();
    if (const absl::Status warm = WarmUp(); !warm.ok()) return Refuse(warm);
    std::vector<std::thread> threads;
    for (int i = 0; i < kSteadyCallers; ++i) {
      threads.emplace_back([this, i] { Call("steady", steady_->address(), i); });
    }
    for (int i = 0; i < kMortalCallers; ++i) {
      threads.emplace_back(
          [this, i, &mortal_address] { Call("mortal", mortal_address, kSteadyCallers + i); });
    }
    if (losing_ != nullptr) {
      for (int i = 0; i < kLosingCallers; ++i) {
        threads.emplace_back(
            [this, i] { Call("losing", losing_->address(), kSteadyCallers + kMortalCallers + i); });
      }
      threads.emplace_back([this] { LoseDevices(); });
    }
    threads.emplace_back([this] { KillClients(); });
    threads.emplace_back([this, &mortal_address] { KillServers(mortal_address); });
    Watch(length);
    over_ = true;
    gate_.Close();
    for (std::thread& thread : threads) thread.join();
    CheckTensors();
    return Judge();
  }

 private:
  static bool Refuse(const absl::Status& status) {
    absl::FPrintF(stderr, "soak: %s\n", status.ToString());
    return false;
  }

  // A software device takes seconds to compile each kernel, and callers would wait for each other.
  // Compiling here puts the bytecode into the disk cache for the servers to come.
  absl::Status WarmUp() {
    const absl::Time start = absl::Now();
    absl::StatusOr<Client> client = Client::Connect(steady_->address());
    if (!client.ok()) return client.status();
    for (const v1::OperatorDesc& desc : cases_.operators()) {
      const absl::StatusOr<v1::CompileOperatorResponse> compiled = client->Compile(desc);
      if (!compiled.ok()) return compiled.status();
    }
    absl::PrintF("warm after %.1f s\n", absl::ToDoubleSeconds(absl::Now() - start));
    std::fflush(stdout);
    return absl::OkStatus();
  }

  void Call(const char* server, const std::string& address, uint64_t number) {
    Random random(seed_ * 1000 + number);
    const bool is_always_there =
        absl::string_view(server) == "steady" ||
        (absl::string_view(server) == "losing" && absl::GetFlag(FLAGS_standby) == "on");
    Workload workload(address, cases_, ledger_,
                      {.server = server,
                       .may_be_unavailable = !is_always_there,
                       .tensors = {.prefix = absl::StrCat("caller/", number),
                                   .may_be_lost = absl::string_view(server) != "steady",
                                   .patience = kPatience},
                       .patience = kPatience});
    while (gate_.Enter()) {
      workload.DoOne(random);
      gate_.Leave();
    }
    workload.Leave();
  }

  // Callers that are killed in the middle of whatever they do.
  void KillClients() {
    Random random(seed_ * 1000 + 900);
    while (gate_.Enter()) {
      std::vector<std::string> words = {
          "/proc/self/exe", absl::StrCat("--client_of=", steady_->address()),
          absl::StrCat("--cases=", absl::GetFlag(FLAGS_cases)), absl::StrCat("--seed=", seed_),
          absl::StrCat("--start=", random.Bits() >> 1)};
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      pid_t pid = 0;
      if (posix_spawn(&pid, words[0].c_str(), nullptr, nullptr, arguments.data(), environ) == 0) {
        SleepUntil(absl::Now() + absl::Milliseconds(500 + random.Below(3000)), over_);
        kill(pid, SIGKILL);
        int status = 0;
        waitpid(pid, &status, 0);
        if (WIFSIGNALED(status)) {
          ledger_.Count("client killed", absl::StatusCode::kOk);
        } else {
          ledger_.Fail("client killed", absl::StrCat("it ended by itself with ", status));
        }
      }
      gate_.Leave();
    }
  }

  void KillServers(const std::string& address) {
    Random random(seed_ * 1000 + 901);
    for (;;) {
      SleepUntil(absl::Now() + absl::Seconds(4) + absl::Milliseconds(random.Below(16000)), over_);
      if (over_) return;
      const bool drains = random.OneIn(3);
      mortal_->Signal(drains ? SIGTERM : SIGKILL);
      const std::optional<int> status = mortal_->WaitForExit(kPatience);
      if (status != (drains ? 0 : -SIGKILL)) {
        ledger_.Fail("server ended", absl::StrCat("its status is ", status.value_or(-999)));
      }
      CheckLog(*mortal_);
      auto started = StartServer(address, cache_, {}, "off");
      if (!started.ok()) {
        ledger_.Fail("server restarted", started.status().ToString());
        return;
      }
      mortal_ = *std::move(started);
      ledger_.Count(drains ? "server drained" : "server killed", absl::StatusCode::kOk);
    }
  }

  void LoseDevices() {
    Random random(seed_ * 1000 + 902);
    absl::StatusOr<Client> client =
        Client::Connect(losing_->address(), {.connect_timeout = kPatience, .timeout = kPatience});
    if (!client.ok()) return ledger_.Fail("connect", client.status().ToString());
    for (;;) {
      SleepUntil(absl::Now() + absl::Seconds(3) + absl::Milliseconds(random.Below(9000)), over_);
      if (!gate_.Enter()) return;
      LoseDevice(*client, random);
      gate_.Leave();
    }
  }

  // Loses the device once. Without a standby, callers get Unavailable meanwhile; afterwards the
  // server must answer again.
  void LoseDevice(Client& client, Random& random) {
    const absl::Time patience = absl::Now() + kPatience;
    faults_.Begin("lose_device");
    for (bool has_another = false;;) {
      SoakCase& c = cases_.PickSmall(random);
      MemorySink sink;
      const absl::Status end = client.Execute(c.desc(), c.bytes(), sink).status();
      const std::string mistake = end.ok() ? c.FindMistake(sink.outputs()) : "";
      const bool may_be_unavailable = absl::GetFlag(FLAGS_standby) != "on";
      if (!mistake.empty() || (!end.ok() && !(may_be_unavailable && absl::IsUnavailable(end)))) {
        ledger_.Fail("device lost",
                     absl::StrCat(end.ok() ? mistake : Describe(end), " of ", c.line()));
      }
      if (end.ok() && has_another) break;
      const auto statistics = client.GetStatistics();
      has_another = statistics.ok() && statistics->device().resets() > losses_;
      if (absl::Now() > patience) {
        return ledger_.Fail("device lost", "the server did not come to answer again");
      }
    }
    ++losses_;
    ledger_.Count("device lost", absl::StatusCode::kOk);
  }

  // Waits until nothing is in progress and all reservations are released.
  void AwaitIdle(Client& client) {
    const absl::Time patience = absl::Now() + kPatience;
    for (;;) {
      const auto statistics = client.GetStatistics();
      if (statistics.ok()) {
        const v1::InFlight& in_flight = statistics->in_flight();
        if (in_flight.executions() + in_flight.streams() + in_flight.bytes() == 0) return;
      }
      if (absl::Now() > patience) {
        ledger_.Fail("rest", statistics.ok() ? statistics->in_flight().ShortDebugString()
                                             : statistics.status().ToString());
        return;
      }
      absl::SleepFor(absl::Milliseconds(20));
    }
  }

  // Alternates periods of load and of rest.
  void Watch(absl::Duration length) {
    const absl::Time start = absl::Now();
    const absl::Duration turn = std::clamp(length / 30, absl::Seconds(2), absl::Seconds(20));
    const absl::Duration rest =
        std::clamp(length / 30, absl::Milliseconds(300), kUntilMemoryIsReturned);
    std::vector<Client> clients;
    for (const ServerProcess* server : {steady_.get(), losing_.get()}) {
      if (server == nullptr) continue;
      absl::StatusOr<Client> client = Client::Connect(server->address());
      if (!client.ok()) return ledger_.Fail("connect", client.status().ToString());
      clients.push_back(*std::move(client));
    }
    while (absl::Now() < start + length) {
      SleepUntil(absl::Now() + turn, over_);
      gate_.Rest();
      for (Client& client : clients) AwaitIdle(client);
      absl::SleepFor(rest);
      const Vitals vitals = TakeVitals(steady_->pid(), absl::ToDoubleMinutes(absl::Now() - start));
      vitals_.push_back(vitals);
      absl::PrintF("%6.1f min: %d actions, %d failures; %s", vitals.at, ledger_.total(),
                   ledger_.failures(), Text(vitals));
      if (losing_ != nullptr) {
        losing_vitals_.push_back(TakeVitals(losing_->pid(), static_cast<double>(losses_)));
        absl::PrintF("; %d losses: %s", losses_, Text(losing_vitals_.back()));
      }
      absl::PrintF("\n");
      std::fflush(stdout);
      gate_.Resume();
    }
  }

  // Callers have deleted theirs; those of callers that were killed have leases of seconds.
  void CheckTensors() {
    absl::StatusOr<Client> client = Client::Connect(steady_->address());
    if (!client.ok()) return ledger_.Fail("connect", client.status().ToString());
    const absl::Time patience = absl::Now() + absl::Minutes(1);
    for (;;) {
      const absl::StatusOr<v1::ListTensorsResponse> left = client->ListTensors();
      if (left.ok() && left->tensors().empty()) return;
      if (absl::Now() > patience) {
        return ledger_.Fail("tensors", left.ok() ? absl::StrCat(left->tensors_size(), " are left")
                                                 : left.status().ToString());
      }
      absl::SleepFor(absl::Milliseconds(100));
    }
  }

  static std::string Text(const Vitals& vitals) {
    return absl::StrFormat("%.1f MiB, %d handles, %d threads",
                           static_cast<double>(vitals.resident_bytes) / (1 << 20), vitals.handles,
                           vitals.threads);
  }

  void CheckLog(const ServerProcess& server) {
    for (const std::string& line : server.log_lines()) {
      if (absl::StrContains(line, "\"level\":\"error\"")) ledger_.Fail("server's log", line);
    }
  }

  // The server's log reports each loss and each return.
  void CheckLosses() {
    if (losing_ == nullptr) return;
    for (const char* event : {"\"event\":\"device_lost\"", "\"event\":\"device_back\""}) {
      uint64_t count = 0;
      for (const std::string& line : losing_->log_lines()) count += absl::StrContains(line, event);
      if (count != losses_ || count == 0) {
        ledger_.Fail("server's log", absl::StrCat(event, " ", count, " times; the device was lost ",
                                                  losses_.load(), " times"));
      }
    }
  }

  bool Judge() {
    for (ServerProcess* server : {steady_.get(), mortal_.get(), losing_.get()}) {
      if (server == nullptr) continue;
      server->Signal(SIGTERM);
      const std::optional<int> status = server->WaitForExit(kPatience);
      if (status != 0) ledger_.Fail("end", absl::StrCat("exit status ", status.value_or(-999)));
      CheckLog(*server);
    }
    CheckLosses();
    ledger_.Print();
    VitalBounds bounds = {
        .resident_bytes_per_unit = absl::GetFlag(FLAGS_max_growth_mib_per_minute) * (1 << 20),
        .handles = 8,
        .threads = 8};
    bool held = false;
    std::string vitals = JudgeVitals(vitals_, bounds, held);
    if (losing_ != nullptr) {
      bounds.unit = "loss";
      bounds.resident_bytes_per_unit = absl::GetFlag(FLAGS_max_growth_mib_per_loss) * (1 << 20);
      bool losing_held = false;
      absl::StrAppend(&vitals, "of the server that lost its device ", losses_.load(), " times:\n",
                      JudgeVitals(losing_vitals_, bounds, losing_held));
      held = held && losing_held;
    }
    const bool good = held && ledger_.failures() == 0;
    absl::PrintF("%s%d actions, %d failures, seed %d: %s\n", vitals, ledger_.total(),
                 ledger_.failures(), seed_, good ? "GOOD" : "BAD");
    return good;
  }

  const uint64_t seed_;
  const ScratchDirectory cache_;
  SoakCases cases_;
  Ledger ledger_;
  Gate gate_;
  std::atomic<bool> over_ = false;
  std::unique_ptr<ServerProcess> steady_;
  std::unique_ptr<ServerProcess> mortal_;  // of KillServers, while that runs
  const DriverFaults faults_;
  std::unique_ptr<ServerProcess> losing_;  // null without a driver
  std::atomic<uint64_t> losses_ = 0;
  std::vector<Vitals> vitals_;         // of steady_, over time
  std::vector<Vitals> losing_vitals_;  // of losing_, by number of losses
};

// Runs until the process is killed. Its results are ignored.
void CallUntilKilled(const std::string& address, uint64_t seed) {
  SoakCases cases(seed, absl::GetFlag(FLAGS_cases), false);
  Ledger ledger;
  Workload workload(address, cases, ledger,
                    {.server = "dying",
                     .may_be_unavailable = true,
                     .tensors = {.prefix = absl::StrCat("killed/", absl::GetFlag(FLAGS_start)),
                                 .may_be_killed = true,
                                 .patience = kPatience},
                     .patience = kPatience});
  Random random(absl::GetFlag(FLAGS_start));
  for (;;) workload.DoOne(random);
}

}  // namespace
}  // namespace opmill

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  grpc_init();  // never shut down, because clients come and go
  uint64_t seed = absl::GetFlag(FLAGS_seed);
  if (seed == 0) seed = std::random_device()();
  if (const std::string address = absl::GetFlag(FLAGS_client_of); !address.empty()) {
    opmill::CallUntilKilled(address, seed);
  }
  absl::PrintF("soak: seed %d\n", seed);
  std::fflush(stdout);
  opmill::Soak soak(seed);
  return soak.Run(absl::Minutes(1) * absl::GetFlag(FLAGS_minutes)) ? 0 : 1;
}
