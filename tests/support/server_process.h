// The real server as a child process. POSIX only.
#ifndef OPMILL_TESTS_SUPPORT_SERVER_PROCESS_H_
#define OPMILL_TESTS_SUPPORT_SERVER_PROCESS_H_

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace opmill {

class ServerProcess {
 public:
  // Starts opmill-server on a free port, with these flags, and waits until it serves. The binary is
  // the one that was built with the test, unless OPMILL_SERVER_BINARY names another one. The
  // environment is that of this process without OPMILL_*, plus the given variables.
  struct Surroundings {
    std::vector<std::string> environment;  // NAME=value
    absl::Duration patience = absl::Seconds(60);
    std::string binary;  // of another server, which gets no other flags than these
  };
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(std::vector<std::string> flags,
                                                              const Surroundings& surroundings);
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(std::vector<std::string> flags) {
    return Start(std::move(flags), {});
  }
  // Kills the process if it is still running.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const std::string& address() const { return address_; }
  const std::string& metrics_address() const { return metrics_address_; }  // empty if disabled
  pid_t pid() const { return pid_; }

  void Signal(int number) const;
  // Returns the exit status, or minus the number of the signal that ended the process; nullopt if
  // it is still running. May be called again.
  std::optional<int> WaitForExit(absl::Duration timeout = absl::Seconds(60));

  // The resident set, current (VmRSS) and peak (VmHWM); 0 after the process has ended.
  uint64_t MemoryBytes() const { return StatusBytes("VmRSS:"); }
  uint64_t PeakMemoryBytes() const { return StatusBytes("VmHWM:"); }

  // The lines of the log so far: JSON objects.
  std::vector<std::string> log_lines() const;
  // Waits for a line that contains `text`, and returns the first one, including earlier lines;
  // nullopt after the timeout.
  std::optional<std::string> WaitForLine(absl::string_view text,
                                         absl::Duration timeout = absl::Seconds(60));

 private:
  ServerProcess(pid_t pid, int log_descriptor);
  void ReadLog();
  uint64_t StatusBytes(absl::string_view field) const;  // of /proc/PID/status

  const pid_t pid_;
  const int log_descriptor_;
  std::string address_;
  std::string metrics_address_;
  std::optional<int> exit_status_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;  // guarded by mutex_
  bool log_ended_ = false;          // guarded by mutex_
  std::thread reader_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_SUPPORT_SERVER_PROCESS_H_
