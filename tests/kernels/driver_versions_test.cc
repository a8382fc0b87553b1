// Which drivers are reported as too old.
#include "kernels/d3d12/adapter/driver_versions.h"

#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

TEST(DriverVersions, RecognizesOldVersions) {
  const struct {
    const char* name;
    const char* version;
    const char* found;     // empty: new enough or unknown
    const char* required;  // empty in the same cases
  } kCases[] = {
      {"llvmpipe", "Mesa 22.3.6 (LLVM 15.0.6)", "22.3.6", "25.0"},
      {"llvmpipe", "Mesa 24.3.4-1 (LLVM 19.1.7)", "24.3.4", "25.0"},
      {"llvmpipe", "Mesa 25.0.0-devel (git-0123456789) (LLVM 19.1.7)", "", ""},
      {"llvmpipe", "Mesa 25.0.7-2~bpo12+1 (LLVM 15.0.6)", "", ""},
      {"llvmpipe", "Mesa 100.0.0", "", ""},
      {"llvmpipe", "Mesa 9.2", "9.2", "25.0"},
      {"radv", "Mesa 22.3.6", "22.3.6", "25.0"},
      {"radv", "Mesa 25.2.0", "", ""},
      {"vkd3d-shader", "vkd3d-shader 2.0 (Debian 2.0-1)", "2.0", "2.1"},
      {"vkd3d-shader", "vkd3d-shader 1.19", "1.19", "2.1"},
      {"vkd3d-shader", "vkd3d-shader 2.1 (Debian 2.1-1)", "", ""},
      {"vkd3d-shader", "vkd3d-shader 2.10", "", ""},
      {"vkd3d-shader", "vkd3d-shader 3", "", ""},
      {"NVIDIA", "535.129.03", "", ""},
      {"Microsoft Basic Render Driver", "10.0.20348.1", "", ""},
      {"llvmpipe", "Mesa", "", ""},
      {"llvmpipe", "", "", ""},
      {"llvmpipe", "Mesa 99999999999999999999.1", "", ""},
      {"", "", "", ""},
  };
  for (const auto& [name, version, found, required] : kCases) {
    SCOPED_TRACE(std::string(name) + ", " + version);
    const std::optional<OldDriver> old = FindOldDriver(name, version);
    ASSERT_EQ(old.has_value(), *found != '\0');
    if (!old.has_value()) continue;
    EXPECT_EQ(old->driver, name);
    EXPECT_EQ(old->version, found);
    EXPECT_EQ(old->required, required);
  }
}

TEST(DriverVersions, ExplainsTheProblem) {
  EXPECT_EQ(
      FindOldDriver("llvmpipe", "Mesa 22.3.6 (LLVM 15.0.6)")->Sentence(),
      "llvmpipe is version 22.3.6; 25.0 or newer is needed. Older ones end shader loops after "
      "65535 iterations: results are wrong.");
}

TEST(DriverVersions, GivesAReasonForEachRequirement) {
  for (const DriverRequirement& requirement : DriverRequirements()) {
    EXPECT_TRUE(absl::EndsWith(requirement.why, ".")) << requirement.driver;
    EXPECT_GT(requirement.major, 0u) << requirement.driver;
  }
}

}  // namespace
}  // namespace opmill
