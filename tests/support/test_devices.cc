#include "tests/support/test_devices.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#if OPMILL_CPU_DEVICE
#include "kernels/cpu/device/cpu_device.h"
#endif
#include "kernels/d3d12/adapter/adapters.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/reference/device/reference_device.h"

namespace opmill {
namespace {

using OpenedDevice = absl::StatusOr<std::unique_ptr<Device>>;

// Closes the devices while everything that they use still exists.
class Devices : public ::testing::Environment {
 public:
  OpenedDevice& Get(const std::string& name) {
    auto found = devices_.find(name);
    if (found == devices_.end()) found = devices_.emplace(name, Open(name)).first;
    return found->second;
  }
  void SetShaderCache(std::string directory) { shader_cache_ = std::move(directory); }
  void TearDown() override { devices_.clear(); }

 private:
  OpenedDevice Open(const std::string& name) const {
    if (name == "Reference") return CreateReferenceDevice();
#if OPMILL_CPU_DEVICE
    if (name == "Cpu") {
      return CreateCpuDevice(
          {.min_incremental_bytes = 1});  // so that small cases are incremental too
    }
#endif
    D3D12DeviceOptions options;
    options.choice = name == "Hardware" ? AdapterChoice::kHardware : AdapterChoice::kSoftware;
    options.shader_cache_directory = shader_cache_;
    options.allow_unified_memory = name != "SoftwareCopies";
    if (name == "Software" || name == "SoftwareCopies" || name == "Hardware") {
      return CreateD3D12Device(options);
    }
    return absl::NotFoundError(absl::StrCat("No test device is called ", name, "."));
  }

  std::string shader_cache_;
  std::map<std::string, OpenedDevice> devices_;
};

// GoogleTest owns it.
Devices* const devices = static_cast<Devices*>(::testing::AddGlobalTestEnvironment(new Devices()));

}  // namespace

bool HasHardwareAdapter() {
  const auto adapters = ListAdapters();
  return adapters.ok() && std::any_of(adapters->begin(), adapters->end(), [](const AdapterInfo& a) {
           return a.kind == DeviceKind::kHardware;
         });
}

std::vector<std::string> TestDevices() {
  std::vector<std::string> names = {"Reference", "Software"};
#if OPMILL_CPU_DEVICE
  names.push_back("Cpu");
#endif
  if (HasHardwareAdapter()) names.push_back("Hardware");
  return names;
}

absl::StatusOr<Device*> OpenTestDevice(const std::string& name) {
  const OpenedDevice& device = devices->Get(name);
  if (!device.ok()) return device.status();
  return device->get();
}

void SetTestShaderCache(std::string directory) { devices->SetShaderCache(std::move(directory)); }

bool RequiresDevices() {
  const char* value = std::getenv("OPMILL_REQUIRE_DEVICE");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

void DeviceTest::SetUp() {
  absl::StatusOr<Device*> device = OpenTestDevice(GetParam());
  if (device.ok()) {
    device_ = *device;
    return;
  }
  if (RequiresDevices()) FAIL() << device.status();
  GTEST_SKIP() << device.status();
}

}  // namespace opmill
