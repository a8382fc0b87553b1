#include <windows.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "kernels/base/utf16.h"
#include "server/host/system_service.h"

namespace opmill {
namespace {

wchar_t kName[] = L"OpMill";
wchar_t kDescription[] = L"Serves DirectML's operators over gRPC.";
// An account with few local rights and no network identity.
constexpr wchar_t kAccount[] = L"NT AUTHORITY\\LocalService";
constexpr DWORD kRestartMilliseconds = 5'000;
constexpr DWORD kStartMilliseconds = 60'000;
// Time in addition to the drain timeout, for the rest of the shutdown.
constexpr absl::Duration kStopMargin = absl::Seconds(5);

struct HandleCloser {
  void operator()(SC_HANDLE handle) const { CloseServiceHandle(handle); }
};
using Handle = std::unique_ptr<std::remove_pointer_t<SC_HANDLE>, HandleCloser>;

absl::Status LastError(absl::string_view what) {
  const DWORD error = GetLastError();
  const absl::StatusCode code = error == ERROR_ACCESS_DENIED ? absl::StatusCode::kPermissionDenied
                                : error == ERROR_SERVICE_DOES_NOT_EXIST
                                    ? absl::StatusCode::kNotFound
                                : error == ERROR_SERVICE_EXISTS ? absl::StatusCode::kAlreadyExists
                                                                : absl::StatusCode::kUnknown;
  return absl::Status(code, absl::StrCat("The service OpMill cannot be ", what, ": ",
                                         std::system_category().message(static_cast<int>(error))));
}

DWORD Milliseconds(absl::Duration time) {
  constexpr int64_t kMost = 3'600'000;
  return static_cast<DWORD>(std::min(absl::ToInt64Milliseconds(time), kMost));
}

// Quotes an argument the way CommandLineToArgvW and the C library parse it: backslashes are special
// only before a quote.
std::string Quoted(absl::string_view argument) {
  std::string quoted = "\"";
  size_t backslashes = 0;
  for (const char c : argument) {
    backslashes = c == '\\' ? backslashes + 1 : 0;
    if (c == '"') quoted.append(backslashes + 1, '\\');
    quoted += c;
    if (c == '"') backslashes = 0;
  }
  return absl::StrCat(quoted, std::string(backslashes, '\\'), "\"");
}

std::string ProgramPath() {
  std::wstring path(32768, L'\0');  // the maximum length on Windows
  GetModuleFileNameW(nullptr, path.data(), static_cast<DWORD>(path.size()));
  return Utf8(path.c_str());
}

// The state of the service. A singleton, because the service manager calls functions without a
// context.
class Service {
 public:
  Service(StopSignal& stop, absl::Duration drain_timeout, const ServeFunction& serve)
      : stop_(stop), drain_timeout_(drain_timeout), serve_(serve) {
    running_ = this;
  }

  absl::StatusOr<int> Run() {
    const SERVICE_TABLE_ENTRYW table[] = {{kName, &Main}, {nullptr, nullptr}};
    if (!StartServiceCtrlDispatcherW(table)) {
      if (GetLastError() == ERROR_FAILED_SERVICE_CONTROLLER_CONNECT) {
        return absl::FailedPreconditionError(
            "--service=run is for the service manager alone: install with --service=install, then "
            "\"net start OpMill\".");
      }
      return LastError("run");
    }
    return exit_code_;
  }

 private:
  static void WINAPI Main(DWORD, wchar_t**) { running_->Serve(); }

  void Serve() {
    manager_ = RegisterServiceCtrlHandlerExW(kName, &Control, this);
    Report(SERVICE_START_PENDING, kStartMilliseconds);
    exit_code_ = serve_([this] { Report(SERVICE_RUNNING, 0); });
    Report(SERVICE_STOPPED, 0);
  }

  static DWORD WINAPI Control(DWORD control, DWORD, void*, void* context) {
    Service& service = *static_cast<Service*>(context);
    switch (control) {
      case SERVICE_CONTROL_STOP:
      case SERVICE_CONTROL_PRESHUTDOWN:
        service.Report(SERVICE_STOP_PENDING, Milliseconds(service.drain_timeout_ + kStopMargin));
        service.stop_.Request();
        return NO_ERROR;
      case SERVICE_CONTROL_INTERROGATE:
        return NO_ERROR;
      default:
        return ERROR_CALL_NOT_IMPLEMENTED;
    }
  }

  void Report(DWORD state, DWORD milliseconds) {
    SERVICE_STATUS status = {};
    status.dwServiceType = SERVICE_WIN32_OWN_PROCESS;
    status.dwCurrentState = state;
    if (state == SERVICE_RUNNING) {
      status.dwControlsAccepted = SERVICE_ACCEPT_STOP | SERVICE_ACCEPT_PRESHUTDOWN;
    }
    if (state == SERVICE_STOPPED && exit_code_ != 0) {
      status.dwWin32ExitCode = ERROR_SERVICE_SPECIFIC_ERROR;
      status.dwServiceSpecificExitCode = static_cast<DWORD>(exit_code_);
    }
    status.dwWaitHint = milliseconds;
    SetServiceStatus(manager_, &status);
  }

  static Service* running_;

  StopSignal& stop_;
  const absl::Duration drain_timeout_;
  const ServeFunction& serve_;
  SERVICE_STATUS_HANDLE manager_ = nullptr;
  int exit_code_ = 0;
};

Service* Service::running_ = nullptr;

}  // namespace

absl::Status InstallService(const std::vector<std::string>& arguments,
                            absl::Duration drain_timeout) {
  std::string command = Quoted(ProgramPath());
  for (const std::string& argument : arguments) absl::StrAppend(&command, " ", Quoted(argument));
  absl::StrAppend(&command, " --service=run");  // the last occurrence of a flag applies

  const Handle manager(OpenSCManagerW(nullptr, nullptr, SC_MANAGER_CREATE_SERVICE));
  if (manager == nullptr) return LastError("installed");
  const Handle service(CreateServiceW(manager.get(), kName, kName, SERVICE_ALL_ACCESS,
                                      SERVICE_WIN32_OWN_PROCESS, SERVICE_AUTO_START,
                                      SERVICE_ERROR_NORMAL, Utf16(command).c_str(), nullptr,
                                      nullptr, nullptr, kAccount, nullptr));
  if (service == nullptr) return LastError("installed");

  SERVICE_DESCRIPTIONW description = {kDescription};
  SC_ACTION restart = {SC_ACTION_RESTART, kRestartMilliseconds};
  SERVICE_FAILURE_ACTIONSW failure = {};
  failure.cActions = 1;
  failure.lpsaActions = &restart;
  SERVICE_PRESHUTDOWN_INFO shutdown = {Milliseconds(drain_timeout + kStopMargin)};
  if (ChangeServiceConfig2W(service.get(), SERVICE_CONFIG_DESCRIPTION, &description) &&
      ChangeServiceConfig2W(service.get(), SERVICE_CONFIG_FAILURE_ACTIONS, &failure) &&
      ChangeServiceConfig2W(service.get(), SERVICE_CONFIG_PRESHUTDOWN_INFO, &shutdown)) {
    return absl::OkStatus();
  }
  absl::Status status = LastError("installed");
  DeleteService(service.get());
  return status;
}

absl::Status UninstallService() {
  const Handle manager(OpenSCManagerW(nullptr, nullptr, SC_MANAGER_CONNECT));
  if (manager == nullptr) return LastError("uninstalled");
  const Handle service(OpenServiceW(manager.get(), kName, SERVICE_STOP | DELETE));
  if (service == nullptr) return LastError("uninstalled");
  SERVICE_STATUS ignored = {};
  ControlService(service.get(), SERVICE_CONTROL_STOP, &ignored);  // a running one is removed later
  if (!DeleteService(service.get())) return LastError("uninstalled");
  return absl::OkStatus();
}

absl::StatusOr<int> RunService(StopSignal& stop, absl::Duration drain_timeout,
                               const ServeFunction& serve) {
  return Service(stop, drain_timeout, serve).Run();
}

}  // namespace opmill
