// The server as a service that the system starts and stops: Windows' service manager. Elsewhere all
// of this is Unimplemented: service managers of Linux run it as it is.
#ifndef OPMILL_SERVER_HOST_WINDOWS_SERVICE_H_
#define OPMILL_SERVER_HOST_WINDOWS_SERVICE_H_

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

// Registers this program as the service OpMill, which starts with the machine, with these arguments
// and --service=run, under an account with few rights. It is not started.
absl::Status InstallService(const std::vector<std::string>& arguments,
                            absl::Duration drain_timeout);
absl::Status UninstallService();

// Serves until stopped, calls `serving` when it begins to, and returns the exit code.
using ServeFunction = std::function<int(const std::function<void()>& serving)>;

// Runs `serve` for the service manager, which must have started this process, and passes its wish
// to `stop`. Returns the exit code.
absl::StatusOr<int> RunService(StopSignal& stop, absl::Duration drain_timeout,
                               const ServeFunction& serve);

}  // namespace opmill

#endif  // OPMILL_SERVER_HOST_WINDOWS_SERVICE_H_
