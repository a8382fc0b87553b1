// flags -> options -> Server::Create -> wait for the signal -> drain.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"
#include "kernels/d3d12/adapters.h"
#include "proto/allocator.h"
#include "server/flags.h"
#include "server/log.h"
#include "server/server.h"
#include "server/stop_signal.h"

namespace {

int ListAdapters() {
  const auto adapters = opmill::ListAdapters();
  if (!adapters.ok()) {
    std::fprintf(stderr, "opmill-server: %s\n", std::string(adapters.status().message()).c_str());
    return EXIT_FAILURE;
  }
  for (const opmill::AdapterInfo& adapter : *adapters) {
    std::printf("%u  %s  (%s, %s)\n", adapter.index, adapter.name.c_str(),
                adapter.kind == opmill::DeviceKind::kHardware ? "hardware" : "software",
                adapter.driver.c_str());
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  opmill::TuneAllocatorForLargeMessages();
  // gRPC's locks are abseil's too, and Debian's abseil looks for deadlocks at each: several percent
  // of a small call.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const std::unique_ptr<opmill::StopSignal> stop = opmill::StopSignal::Install();
  grpc_init();  // for good: the last one to let go of gRPC may wait 10 s for a poller of its own
  const auto line = opmill::ParseCommandLine(argc, argv);
  if (!line.ok()) {
    std::fprintf(stderr, "opmill-server: %s\n", std::string(line.status().message()).c_str());
    return 2;
  }
  if (line->list_adapters) return ListAdapters();

  opmill::StartLog(line->log_format, line->log_level);
  auto server = opmill::Server::Create(line->server);
  if (!server.ok()) {
    opmill::LogLine(opmill::LogLevel::kError, "not_started").Add(server.status());
    return EXIT_FAILURE;
  }
  stop->Wait();
  std::thread impatience([&] {
    stop->Wait();
    (*server)->HurryUp();
  });
  const absl::Status drained = (*server)->Drain();
  stop->Release();
  impatience.join();
  const int exit_code = drained.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
  // What callers have left behind may keep the device longer than anyone would wait.
  const bool leave_at_once = !drained.ok() || (*server)->device_is_busy();
  if (!leave_at_once) server->reset();
  opmill::LogLine(opmill::LogLevel::kInfo, "stopped").Add(drained);
  stop->Done();
  if (leave_at_once) std::_Exit(exit_code);
  return exit_code;
}
