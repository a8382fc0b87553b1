// flags -> options -> Server::Create -> wait for the signal -> drain.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "kernels/base/process_io.h"
#include "kernels/base/process_memory.h"
#include "kernels/d3d12/adapter/adapters.h"
#include "server/flags/flags.h"
#include "server/host/stop_signal.h"
#include "server/host/system_service.h"
#include "server/observe/log.h"
#include "server/server.h"

namespace {

int Fail(const absl::Status& status, int exit_code = EXIT_FAILURE) {
  std::fprintf(stderr, "opmill-server: %s\n", std::string(status.message()).c_str());
  return exit_code;
}

int ListAdapters() {
  const auto adapters = opmill::ListAdapters();
  if (!adapters.ok()) return Fail(adapters.status());
  for (const opmill::AdapterInfo& adapter : *adapters) {
    std::printf("%u  %s  (%s, %s)\n", adapter.index, adapter.name.c_str(),
                adapter.kind == opmill::DeviceKind::kHardware ? "hardware" : "software",
                adapter.driver.c_str());
    for (const opmill::OldDriver& old : adapter.old_drivers) {
      std::printf("   %s\n", old.Sentence().c_str());
    }
  }
  return EXIT_SUCCESS;
}

struct End {
  int exit_code = EXIT_SUCCESS;
  // Abandoned runs may keep the device busy for longer than anyone would wait.
  bool at_once = false;
};

// Serves until `stop`, and drains. Calls `serving` once it serves.
End Serve(const opmill::CommandLine& line, FILE* log, opmill::StopSignal& stop,
          const std::function<void()>& serving) {
  std::atomic<opmill::Server*> serves = nullptr;
  std::atomic<bool> reads_again = false;  // what access needs, once there is a server
  const auto read_again = [&] {
    opmill::Server* const server = serves;
    if (server != nullptr && reads_again.exchange(false)) server->ReloadAccess();
  };
  const auto reload = [&] {
    absl::Status reopened;
    if (!line.log_file.empty()) reopened = opmill::ReopenForAppending(log, line.log_file);
    opmill::LogLine(reopened.ok() ? opmill::LogLevel::kInfo : opmill::LogLevel::kWarning, "reload")
        .Add(reopened);
    reads_again = true;
    read_again();
  };
  // From the start, which may take minutes.
  std::stop_source stopped;
  std::thread signal_thread([&] {
    stop.Wait(reload);
    stopped.request_stop();
  });
  auto server = opmill::Server::Create(line.server, stopped.get_token());
  if (!server.ok()) {
    const bool was_stopped = stopped.stop_requested();
    stop.Release();
    signal_thread.join();
    opmill::LogLine(was_stopped ? opmill::LogLevel::kInfo : opmill::LogLevel::kError,
                    was_stopped ? "stopped" : "not_started")
        .Add(server.status());
    return {was_stopped ? EXIT_SUCCESS : EXIT_FAILURE};
  }
  serves = server->get();
  read_again();
  serving();
  signal_thread.join();
  std::thread second_signal_thread([&] {
    stop.Wait(reload);
    (*server)->AbortInFlight();
  });
  const absl::Status drained = (*server)->Drain();
  stop.Release();
  second_signal_thread.join();
  End end = {drained.ok() ? EXIT_SUCCESS : EXIT_FAILURE,
             !drained.ok() || (*server)->device_is_busy()};
  if (end.at_once) {
    static_cast<void>(server->release());
  } else {
    server->reset();
  }
  opmill::LogLine(opmill::LogLevel::kInfo, "stopped").Add(drained);
  return end;
}

int Main(const std::vector<std::string>& arguments, opmill::StopSignal& stop) {
  const auto line = opmill::ParseCommandLine(arguments);
  if (!line.ok()) return Fail(line.status(), 2);
  if (!line->page.empty()) {
    std::fputs(line->page.c_str(), stdout);
    return EXIT_SUCCESS;
  }
  if (line->list_adapters) return ListAdapters();
  const absl::Duration drain_timeout = line->server.drain_timeout;
  if (line->service == opmill::ServiceAction::kInstall) {
    const absl::Status installed = opmill::InstallService(arguments, drain_timeout);
    return installed.ok() ? EXIT_SUCCESS : Fail(installed);
  }
  if (line->service == opmill::ServiceAction::kUninstall) {
    const absl::Status uninstalled = opmill::UninstallService();
    return uninstalled.ok() ? EXIT_SUCCESS : Fail(uninstalled);
  }

  absl::StatusOr<FILE*> log = stderr;
  if (!line->log_file.empty()) log = opmill::OpenForAppending(line->log_file);
  if (!log.ok()) return Fail(log.status(), 2);
  opmill::StartLog(line->log_format, line->log_level, *log);
  for (const std::string& sentence : line->unknown_variables) {
    opmill::LogLine(opmill::LogLevel::kWarning, "environment").Add("error", sentence);
  }
  End end;
  const auto serve = [&](const std::function<void()>& serving) {
    end = Serve(*line, *log, stop, serving);
    return end.exit_code;
  };
  if (line->service == opmill::ServiceAction::kRun) {
    const absl::StatusOr<int> ran = opmill::RunService(stop, drain_timeout, serve);
    if (!ran.ok()) return Fail(ran.status());
  } else {
    serve([] {});
  }
  if (end.at_once) std::_Exit(end.exit_code);
  return end.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  opmill::WriteUtf8ToConsole();
  opmill::TuneForServing();
  // gRPC's log would contain unescaped data from callers. Everything that matters is in our own
  // log.
  opmill::SetDefaultEnvironment("GRPC_VERBOSITY", "NONE");
  opmill::StopSignal& stop = opmill::StopSignal::Install();
  grpc_init();  // never undone: the last shutdown may wait 10 s for gRPC's poller
  return Main(opmill::Arguments(argc, argv), stop);
}
