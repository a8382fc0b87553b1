// A device whose compilations and runs wait until the test releases them, so that executions can be
// held at a stage.
#ifndef OPMILL_TESTS_SERVER_GATED_DEVICE_H_
#define OPMILL_TESTS_SERVER_GATED_DEVICE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/engine/device.h"

namespace opmill {

class GatedDevice final : public Device {
 public:
  class Compiled final : public CompiledProgram {
   public:
    explicit Compiled(Program program) : CompiledProgram(std::move(program), {.rounding = 1}) {}
  };
  struct PendingRun {
    std::shared_ptr<const CompiledProgram> compiled;
    Bindings bindings;
    std::stop_token abandoned;
    RunCallback done;
  };

  const DeviceInfo& info() const override { return info_; }
  DeviceCounters counters() const override { return {}; }

  absl::StatusOr<std::shared_ptr<const CompiledProgram>> Compile(
      const Program& program, const std::stop_token& abandoned) override {
    const std::stop_callback stop(abandoned, [this] {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    });
    std::unique_lock lock(mutex_);
    ++compiling_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !compiler_held_ || abandoned.stop_requested(); });
    --compiling_;
    if (abandoned.stop_requested()) {
      ++abandoned_;
      changed_.notify_all();
      return absl::CancelledError("The compilation was abandoned.");
    }
    ++compiled_;
    changed_.notify_all();
    if (!compile_status_.ok()) return compile_status_;
    return std::make_shared<const Compiled>(program);
  }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(uint64_t size_bytes,
                                                   Residency residency) override {
    std::unique_lock lock(mutex_);
    if (allocation_ == Gate::kNext) {
      allocation_ = Gate::kHeld;
      changed_.notify_all();
      changed_.wait(lock, [this] { return allocation_ == Gate::kOpen; });
    }
    if (residency == refused_residency_)
      return absl::ResourceExhaustedError("The device has no memory.");
    return std::make_shared<HostBytes>(size_bytes, residency);
  }

  void Run(std::shared_ptr<const CompiledProgram> compiled, Bindings bindings,
           std::stop_token abandoned, RunCallback done) override {
    const std::lock_guard lock(mutex_);
    runs_.push_back(
        {std::move(compiled), std::move(bindings), std::move(abandoned), std::move(done)});
    changed_.notify_all();
  }

  void HoldCompiler() { SetHeld(true); }
  void ReleaseCompiler() { SetHeld(false); }
  void FailCompilations(absl::Status status) {
    const std::lock_guard lock(mutex_);
    compile_status_ = std::move(status);
  }
  void RefuseBuffers(std::optional<Residency> residency) {
    const std::lock_guard lock(mutex_);
    refused_residency_ = residency;
  }

  void HoldNextAllocation() { SetAllocation(Gate::kNext); }
  void ReleaseAllocation() { SetAllocation(Gate::kOpen); }
  void WaitUntilAllocating() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return allocation_ == Gate::kHeld; });
  }

  void WaitUntilCompiling(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, count] { return compiling_ == count; });
  }
  // Compilations that were stopped.
  void WaitUntilAbandoned(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, count] { return abandoned_ == count; });
  }
  int compiled() const {
    const std::lock_guard lock(mutex_);
    return compiled_;
  }

  size_t pending_runs() const {
    const std::lock_guard lock(mutex_);
    return runs_.size();
  }
  // Waits for a run, and removes and returns the oldest one.
  PendingRun Take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !runs_.empty(); });
    PendingRun run = std::move(runs_.front());
    runs_.pop_front();
    return run;
  }
  // Writes `fill` into every output of the oldest run and ends it.
  void Complete(std::byte fill = std::byte{0}) {
    PendingRun run = Take();
    for (const auto& output : run.bindings.outputs) {
      for (std::byte& byte : output.bytes()) byte = fill;
    }
    run.done(RunStatistics{.batch_size = 1});
  }
  void Fail(const absl::Status& status) { Take().done(status); }

 private:
  class HostBytes final : public Buffer {
   public:
    HostBytes(uint64_t size, Residency residency) : Buffer(size, residency), bytes_(size) {}
    absl::Span<std::byte> bytes() override { return absl::MakeSpan(bytes_); }

   private:
    std::vector<std::byte> bytes_;
  };

  enum class Gate { kOpen, kNext, kHeld };

  void SetAllocation(Gate gate) {
    const std::lock_guard lock(mutex_);
    allocation_ = gate;
    changed_.notify_all();
  }
  void SetHeld(bool held) {
    const std::lock_guard lock(mutex_);
    compiler_held_ = held;
    changed_.notify_all();
  }

  const DeviceInfo info_{};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool compiler_held_ = false;
  Gate allocation_ = Gate::kOpen;
  absl::Status compile_status_;
  std::optional<Residency> refused_residency_;
  int compiling_ = 0;
  int compiled_ = 0;
  int abandoned_ = 0;
  std::deque<PendingRun> runs_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_SERVER_GATED_DEVICE_H_
