// The devices that tests run on, by name.
#ifndef OPMILL_TESTS_SUPPORT_TEST_DEVICES_H_
#define OPMILL_TESTS_SUPPORT_TEST_DEVICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "kernels/engine/device.h"

namespace opmill {

// Parameters for tests that run on every device: Reference, Software, Cpu if it is built, and
// Hardware if the machine has a GPU.
std::vector<std::string> TestDevices();
bool HasHardwareAdapter();

// Opened once per process and closed before it ends. In addition to the names above:
// SoftwareCopies, the software adapter with separate device memory.
absl::StatusOr<Device*> OpenTestDevice(const std::string& name);

// The directory in which devices opened later cache bytecode. By default they cache none.
void SetTestShaderCache(std::string directory);

// True if an absent device is a failure: OPMILL_REQUIRE_DEVICE=1.
bool RequiresDevices();

// A test on the device that its parameter names. Skipped with a message if the device is absent.
class DeviceTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  Device& device() { return *device_; }

 private:
  Device* device_ = nullptr;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_SUPPORT_TEST_DEVICES_H_
