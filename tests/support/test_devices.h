// The devices that tests run on, by name, and a helper that runs one operator.
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

// Validates, compiles and runs. `input` must have at least the bytes that its tensor requires.
// Returns the bytes of each output, each RequiredBytes long.
absl::StatusOr<std::vector<std::vector<std::byte>>> RunOperator(
    Device& device, const OperatorDesc& desc, const std::vector<std::byte>& input,
    FeatureLevel level = kNewestFeatureLevel);
// The same for a validated descriptor of any number of inputs. Sets the time of the run.
absl::StatusOr<std::vector<std::vector<std::byte>>> RunValidated(
    Device& device, const OperatorDesc& validated,
    const std::vector<std::vector<std::byte>>& inputs, absl::Duration* executed = nullptr);

}  // namespace opmill

#endif  // OPMILL_TESTS_SUPPORT_TEST_DEVICES_H_
