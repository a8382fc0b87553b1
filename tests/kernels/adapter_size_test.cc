#include "kernels/d3d12/adapter/adapter_size.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"

namespace opmill {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;

struct SizeCase {
  std::string adapter;
  DeviceKind kind = DeviceKind::kHardware;
  uint32_t compute_units = 0;
  uint64_t own_memory_bytes = 0;
  uint32_t groups = 0;
};

TEST(AdapterSize, FollowsTheComputeUnitsOrTheMemory) {
  const SizeCase cases[] = {
      {"H200, Vulkan", DeviceKind::kHardware, 132, 141 * kGib, 1056},
      {"H200, Direct3D", DeviceKind::kHardware, 0, 141 * kGib, 1056},
      {"RX 7900 XTX, Vulkan", DeviceKind::kHardware, 96, 24 * kGib, 768},
      {"24 GiB, Direct3D", DeviceKind::kHardware, 0, 24 * kGib, 768},
      {"8 GiB, Direct3D", DeviceKind::kHardware, 0, 8 * kGib, 256},
      {"MI300X, Vulkan", DeviceKind::kHardware, 304, 192 * kGib, 2432},
      {"2 compute units", DeviceKind::kHardware, 2, 0, 64},
      {"shares the processor's memory", DeviceKind::kHardware, 0, 0, 64},
      {"lavapipe", DeviceKind::kSoftware, 0, 16 * kGib, 64},
  };
  for (const SizeCase& c : cases) {
    EXPECT_EQ(SizeOf(c.kind, c.compute_units, c.own_memory_bytes).groups, c.groups) << c.adapter;
  }
}

// GPUs with their bandwidth; a group of 256 lanes has 16 KiB in flight, and latency is 700 ns.
TEST(AdapterSize, KeepsTheMemoryBusy) {
  struct Gpu {
    std::string name;
    uint32_t compute_units = 0;
    uint64_t memory_bytes = 0;
    double bytes_per_second = 0;
  };
  const Gpu gpus[] = {
      {"H200", 132, 141 * kGib, 4.8e12},      {"MI300X", 304, 192 * kGib, 5.3e12},
      {"A100", 108, 80 * kGib, 2.0e12},       {"L4", 58, 24 * kGib, 0.3e12},
      {"RTX 4090", 128, 24 * kGib, 1.01e12},  {"RX 7900 XTX", 96, 24 * kGib, 0.96e12},
      {"Radeon VII", 60, 16 * kGib, 1.02e12}, {"RTX 3060", 28, 12 * kGib, 0.36e12},
      {"RX 6400", 12, 4 * kGib, 0.13e12},     {"Radeon 780M", 12, 0, 0.09e12},
  };
  for (const Gpu& gpu : gpus) {
    for (const uint32_t compute_units : {gpu.compute_units, 0u}) {
      const AdapterSize size = SizeOf(DeviceKind::kHardware, compute_units, gpu.memory_bytes);
      EXPECT_GE(size.groups * 16384.0, gpu.bytes_per_second * 700e-9)
          << gpu.name << " with " << compute_units << " compute units";
    }
  }
}

}  // namespace
}  // namespace opmill
