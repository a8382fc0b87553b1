// How the Direct3D 12 device keeps its memory.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/d3d12/d3d12_device.h"
#include "tests/kernels/d3d12_fixture.h"

namespace opmill {
namespace {

TEST_F(D3D12DeviceTest, ReusesMemory) {
  const uint64_t base = device_->counters().buffer_bytes_in_use;
  for (const uint64_t size_bytes : {100u, 5000u, 5u << 20, 70u << 20}) {
    uint64_t total_after_first = 0;
    for (int round = 0; round < 20; ++round) {
      std::vector<std::shared_ptr<Buffer>> buffers;
      for (int i = 0; i < 3; ++i) {
        auto buffer = device_->Allocate(size_bytes, Residency::kUpload);
        ASSERT_TRUE(buffer.ok()) << buffer.status();
        EXPECT_EQ((*buffer)->bytes().size(), size_bytes);
        buffers.push_back(*std::move(buffer));
      }
      const DeviceCounters counters = device_->counters();
      EXPECT_GE(counters.buffer_bytes_in_use, base + 3 * size_bytes);
      const uint64_t total = counters.buffer_bytes_in_use + counters.buffer_bytes_pooled;
      if (round == 0) total_after_first = total;
      EXPECT_EQ(total, total_after_first) << size_bytes;
    }
    EXPECT_EQ(device_->counters().buffer_bytes_in_use, base);
  }
}

TEST_F(D3D12DeviceTest, LimitsIdleMemory) {
  D3D12DeviceOptions options = TestOptions();
  options.max_idle_bytes = 20 << 20;
  Open(options);
  for (uint32_t size_mebibytes = 5; size_mebibytes < 60; size_mebibytes += 5) {
    ASSERT_TRUE(device_->Allocate(size_mebibytes << 20, Residency::kReadback).ok());
  }
  // The idle memory, and the rest of a block of small buffers.
  EXPECT_LE(device_->counters().buffer_bytes_pooled, (20 + 32) << 20);
}

TEST_F(D3D12DeviceTest, BuffersDoNotOverlap) {
  std::vector<std::pair<std::shared_ptr<Buffer>, uint8_t>> buffers;
  uint32_t state = 1;
  for (int i = 0; i < 3000; ++i) {
    state = state * 1664525u + 1013904223u;
    if (buffers.size() > 100 || state >> 30 == 0) {
      if (buffers.empty()) continue;
      std::swap(buffers[state % buffers.size()], buffers.back());
      const auto [buffer, value] = buffers.back();
      const std::vector<uint8_t> bytes = BytesOf(buffer);
      ASSERT_EQ(std::count(bytes.begin(), bytes.end(), value), bytes.size());
      buffers.pop_back();
    } else {
      auto buffer = device_->Allocate(1 + (state >> 8) % 20000, Residency::kReadback);
      ASSERT_TRUE(buffer.ok()) << buffer.status();
      std::memset((*buffer)->bytes().data(), i & 0xFF, (*buffer)->bytes().size());
      buffers.emplace_back(*std::move(buffer), static_cast<uint8_t>(i));
    }
  }
}

TEST_F(D3D12DeviceTest, RefusesAllocationsBeyondItsLimit) {
  D3D12DeviceOptions options = TestOptions();
  options.max_host_bytes = uint64_t{96} << 20;
  Open(options);
  for (const uint64_t size_bytes : {uint64_t{97} << 20, uint64_t{1} << 40, UINT64_MAX}) {
    const auto buffer = device_->Allocate(size_bytes, Residency::kUpload);
    EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted) << size_bytes;
  }
  // Blocks of small inputs and of small outputs take 64 MiB.
  const OperatorPlan small = ShiftPlan(1000, 1);
  const std::vector<uint8_t> input = Noise(small.input_bytes[0], 6);
  ExpectOutput(small, input, Shifted(input, 1));
  OperatorPlan large = ShiftPlan(1000, 2);
  large.scratch_bytes = uint64_t{80} << 20;
  EXPECT_EQ(RunPlan(*device_, large, input).status().code(), absl::StatusCode::kResourceExhausted);
  ExpectOutput(small, input, Shifted(input, 1));
}

TEST_F(D3D12DeviceTest, ReleasesIdleMemoryOnRequest) {
  const auto held = device_->Allocate(uint64_t{40} << 20, Residency::kUpload);
  ASSERT_TRUE(held.ok()) << held.status();
  for (const Residency residency : {Residency::kUpload, Residency::kReadback}) {
    ASSERT_TRUE(device_->Allocate(uint64_t{100} << 20, residency).ok());
  }
  EXPECT_GE(device_->counters().buffer_bytes_pooled, uint64_t{200} << 20);
  device_->ReleaseIdleMemory();
  // The rest of the blocks in use.
  EXPECT_LE(device_->counters().buffer_bytes_pooled, uint64_t{70} << 20);
  EXPECT_GE(device_->counters().buffer_bytes_in_use, uint64_t{40} << 20);
}

TEST_F(D3D12DeviceTest, LetsRunsWaitForTheScratchOfOthers) {
  D3D12DeviceOptions options = TestOptions();
  options.max_host_bytes = uint64_t{96} << 20;
  options.max_batch_runs = 4;
  Open(options);
  OperatorPlan plan = ShiftPlan(1000, 2);
  plan.scratch_bytes = uint64_t{12} << 20;  // of which two fit beside the small buffers
  const auto compiled = Compiled(plan);
  const std::vector<uint8_t> input = Noise(plan.input_bytes[0], 7);
  Runs runs;
  for (int i = 0; i < 40; ++i) runs.Start(*device_, compiled, Bound(plan, input));
  for (const auto& result : runs.Wait()) EXPECT_TRUE(result.ok()) << result.status();
}

}  // namespace
}  // namespace opmill
