#include "server/host/system_service.h"

namespace opmill {
namespace {

absl::Status Unimplemented() {
  return absl::UnimplementedError(
      "--service is for Windows; service managers of other systems run opmill-server as it is.");
}

}  // namespace

absl::Status InstallService(const std::vector<std::string>& /*arguments*/, absl::Duration) {
  return Unimplemented();
}

absl::Status UninstallService() { return Unimplemented(); }

absl::StatusOr<int> RunService(StopSignal&, absl::Duration, const ServeFunction&) {
  return Unimplemented();
}

}  // namespace opmill
