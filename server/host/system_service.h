// The server as a service of the Windows service manager. On other systems all functions return
// Unimplemented; service managers on Linux run the server as it is.
#ifndef OPMILL_SERVER_HOST_SYSTEM_SERVICE_H_
#define OPMILL_SERVER_HOST_SYSTEM_SERVICE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/host/stop_signal.h"

namespace opmill {

enum class ServiceAction : uint32_t { kNone, kInstall, kUninstall, kRun };

// Registers this program as the service OpMill, with these arguments and --service=run, under an
// account with few rights. The service starts with the machine; this function does not start it.
absl::Status InstallService(const std::vector<std::string>& arguments,
                            absl::Duration drain_timeout);
absl::Status UninstallService();

// Serves until stopped, calls `serving` once it serves, and returns the exit code.
using ServeFunction = std::function<int(const std::function<void()>& serving)>;

// Runs `serve` for the service manager, which must have started this process, and forwards its stop
// requests to `stop`. Returns the exit code.
absl::StatusOr<int> RunService(StopSignal& stop, absl::Duration drain_timeout,
                               const ServeFunction& serve);

}  // namespace opmill

#endif  // OPMILL_SERVER_HOST_SYSTEM_SERVICE_H_
