// Controls the fault layer of servers that are started with this environment.
// tests/support/fault_layer.cc lists the faults.
#ifndef OPMILL_TESTS_SUPPORT_DRIVER_FAULTS_H_
#define OPMILL_TESTS_SUPPORT_DRIVER_FAULTS_H_

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/scratch_directory.h"

namespace opmill {

// tests/support/fault_layer.cc says what there is.
class DriverFaults {
 public:
  // NAME=value. Works only for Vulkan drivers.
  std::vector<std::string> environment() const {
    return {"VK_ADD_LAYER_PATH=" OPMILL_FAULT_LAYER_DIRECTORY,
            "VK_INSTANCE_LAYERS=VK_LAYER_OPMILL_faults",
            "FAULT_LAYER_SWITCHES=" + switches_.utf8()};
  }

  void Begin(const std::string& fault) const { std::ofstream(switches_.path() / fault); }

 private:
  const ScratchDirectory switches_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_SUPPORT_DRIVER_FAULTS_H_
