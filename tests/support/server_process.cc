#include "tests/support/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

extern char** environ;

namespace opmill {
namespace {

constexpr char kServingEvent[] = R"("event":"serving")";
constexpr absl::Duration kExitPoll = absl::Milliseconds(5);

// The text of a field in a log line; empty if it is absent.
std::string FieldOf(const std::string& line, absl::string_view name) {
  const std::string key = absl::StrCat("\"", name, "\":\"");
  const size_t found = line.find(key);
  if (found == std::string::npos) return "";
  const size_t start = found + key.size();
  return line.substr(start, line.find('"', start) - start);
}

std::string ServerPath() {
  const char* path = std::getenv("OPMILL_SERVER_BINARY");
  return path != nullptr ? path : OPMILL_SERVER_PATH;
}

// A cache shared by all servers of a test run if their compiler is slow; otherwise each server
// starts without one.
std::string ShaderCache() {
  const char* folder = std::getenv("OPMILL_TEST_SHADER_CACHE");
  return folder != nullptr ? folder : "";
}

// The environment without OPMILL_*, which sets flags of the server, plus `added`.
std::vector<std::string> PlainEnvironment(const std::vector<std::string>& added) {
  std::vector<std::string> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!absl::StartsWith(*variable, "OPMILL_")) kept.push_back(*variable);
  }
  kept.insert(kept.end(), added.begin(), added.end());
  return kept;
}

// In the form that exec needs.
std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The directory in /proc of the server that was started as `pid`. Under Wine `pid` is
// in_console.sh, and the server is a process that Wine has started.
std::filesystem::path ProcessFolder(pid_t pid) {
  if (std::getenv("OPMILL_WINE") == nullptr) return absl::StrCat("/proc/", pid);
  const std::string mark = absl::StrCat("IN_CONSOLE=", pid, std::string(1, '\0'));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    if (absl::StartsWith(ReadAll(entry.path() / "comm"), "opmill-server") &&
        absl::StrContains(ReadAll(entry.path() / "environ"), mark)) {
      return entry.path();
    }
  }
  return {};
}

// Starts the server with `log_end` as its standard error.
absl::StatusOr<pid_t> Spawn(std::vector<std::string> command, std::vector<std::string> environment,
                            int log_end) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, log_end, STDERR_FILENO);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, command[0].c_str(), &actions, nullptr,
                                Pointers(command).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return absl::NotFoundError(
        absl::StrCat(command[0], " could not be started: ", std::strerror(error), "."));
  }
  return pid;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(
    std::vector<std::string> flags, const Surroundings& surroundings) {
  std::vector<std::string> command = {surroundings.binary};
  if (surroundings.binary.empty()) {
    command = {ServerPath(), "--address=127.0.0.1:0", "--log_format=json",
               "--shader_cache=" + ShaderCache()};
  }
  command.insert(command.end(), std::make_move_iterator(flags.begin()),
                 std::make_move_iterator(flags.end()));
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
    return absl::InternalError(
        absl::StrCat("No pipe for the server's log: ", std::strerror(errno), "."));
  }
  const absl::StatusOr<pid_t> pid =
      Spawn(std::move(command), PlainEnvironment(surroundings.environment), pipe_ends[1]);
  close(pipe_ends[1]);
  if (!pid.ok()) {
    close(pipe_ends[0]);
    return pid.status();
  }
  std::unique_ptr<ServerProcess> process(new ServerProcess(*pid, pipe_ends[0]));
  const std::optional<std::string> line =
      process->WaitForLine(kServingEvent, surroundings.patience);
  process->address_ = FieldOf(line.value_or(""), "address");
  process->metrics_address_ = FieldOf(line.value_or(""), "metrics_address");
  if (process->address_.empty()) {
    std::string log;
    for (const std::string& each : process->log_lines()) absl::StrAppend(&log, "\n", each);
    return absl::InternalError(absl::StrCat("The server did not come to serve. Its log:", log));
  }
  return process;
}

ServerProcess::ServerProcess(pid_t pid, int log_descriptor)
    : pid_(pid), log_descriptor_(log_descriptor), reader_([this] { ReadLog(); }) {}

ServerProcess::~ServerProcess() {
  if (!WaitForExit(absl::ZeroDuration())) {
    Signal(SIGKILL);
    WaitForExit();
  }
  reader_.join();
  close(log_descriptor_);
}

void ServerProcess::Signal(int number) const {
  if (!exit_status_.has_value()) kill(pid_, number);
}

std::optional<int> ServerProcess::WaitForExit(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!exit_status_.has_value()) {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) {
      exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    } else if (absl::Now() >= deadline) {
      return std::nullopt;
    } else {
      absl::SleepFor(kExitPoll);
    }
  }
  return exit_status_;
}

uint64_t ServerProcess::StatusBytes(absl::string_view field) const {
  std::ifstream file(ProcessFolder(pid_) / "status");
  std::string line;
  while (std::getline(file, line)) {
    absl::string_view value = line;
    uint64_t kibibytes = 0;
    if (absl::ConsumePrefix(&value, field) && absl::ConsumeSuffix(&value, " kB") &&
        absl::SimpleAtoi(value, &kibibytes)) {
      return kibibytes << 10;
    }
  }
  return 0;
}

std::vector<std::string> ServerProcess::log_lines() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

std::optional<std::string> ServerProcess::WaitForLine(absl::string_view text,
                                                      absl::Duration timeout) {
  const std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(timeout);
  std::unique_lock lock(mutex_);
  for (size_t seen = 0;;) {
    for (; seen < lines_.size(); ++seen) {
      if (absl::StrContains(lines_[seen], text)) return lines_[seen];
    }
    if (log_ended_) return std::nullopt;
    if (changed_.wait_until(lock, deadline) == std::cv_status::timeout && seen == lines_.size()) {
      return std::nullopt;
    }
  }
}

void ServerProcess::ReadLog() {
  std::string line;
  char buffer[4096];
  for (bool more = true; more;) {
    const ssize_t count = read(log_descriptor_, buffer, sizeof(buffer));
    more = count > 0 || (count < 0 && errno == EINTR);
    const std::lock_guard lock(mutex_);
    for (ssize_t i = 0; i < count; ++i) {
      if (buffer[i] == '\n') {
        lines_.push_back(std::exchange(line, {}));
      } else {
        line += buffer[i];
      }
    }
    log_ended_ = !more;
    changed_.notify_all();
  }
}

}  // namespace opmill
