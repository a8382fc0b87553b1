// The devices that tests run on, by name, and one operator run from bytes to bytes.
#ifndef OPMILL_TESTS_SUPPORT_TEST_DEVICES_H_
#define OPMILL_TESTS_SUPPORT_TEST_DEVICES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "kernels/descriptor/feature_levels.h"
#include "kernels/engine/device.h"

namespace opmill {

// Parameters for tests that run on every device, one name each: Reference, Software, Cpu where
// it is built, and Hardware where the machine has a GPU.
std::vector<std::string> TestDevices();
bool HasHardwareAdapter();

// Opened once a process and closed before it ends. Beside those above, SoftwareCopies: the software
// adapter as if its memory were not the host's.
absl::StatusOr<Device*> OpenTestDevice(const std::string& name);

// The folder that devices opened from here on keep bytecode in; without it they keep none.
void SetTestShaderCache(std::string directory);

// True when an absent device is a failure: OPMILL_REQUIRE_DEVICE=1.
bool RequiresDevices();

// A test on the device that its parameter names. An absent device is a visible skip.
class DeviceTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  Device& device() { return *device_; }

 private:
  Device* device_ = nullptr;
};

// Validates, compiles and runs. `input` holds at least the bytes that its tensor requires.
// One vector of bytes an output, each RequiredBytes long.
absl::StatusOr<std::vector<std::vector<std::byte>>> RunOperator(
    Device& device, const OperatorDesc& desc, const std::vector<std::byte>& input,
    FeatureLevel level = kNewestFeatureLevel);

}  // namespace opmill

#endif  // OPMILL_TESTS_SUPPORT_TEST_DEVICES_H_
