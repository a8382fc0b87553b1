// The oldest versions of drivers that this code works with.
#ifndef OPMILL_KERNELS_D3D12_ADAPTER_DRIVER_VERSIONS_H_
#define OPMILL_KERNELS_D3D12_ADAPTER_DRIVER_VERSIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace opmill {

struct DriverRequirement {
  absl::string_view driver;  // its name, or the first word of its version text
  uint32_t major = 0;
  uint32_t minor = 0;
  absl::string_view why;  // the problem with older versions
};

// The first matching requirement applies.
absl::Span<const DriverRequirement> DriverRequirements();

// A driver below its required version.
struct OldDriver {
  std::string driver;    // "llvmpipe"
  std::string version;   // "22.3.6"
  std::string required;  // "25.0"
  std::string why;

  std::string Sentence() const;
  friend bool operator==(const OldDriver&, const OldDriver&) = default;
};

// Checks the driver `name`, whose version text is "Mesa 22.3.6 (LLVM 15.0.6)" or "2.1". Returns
// nullopt if it is new enough, or if nothing is known about it.
std::optional<OldDriver> FindOldDriver(absl::string_view name, absl::string_view version);

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_ADAPTER_DRIVER_VERSIONS_H_
