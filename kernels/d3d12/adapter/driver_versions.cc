#include "kernels/d3d12/adapter/driver_versions.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace opmill {
namespace {

constexpr DriverRequirement kRequirements[] = {
    // Debian 12's version, 22.3.6, does so silently.
    {"llvmpipe", 25, 0, "Older ones end shader loops after 65535 iterations: results are wrong."},
    {"Mesa", 25, 0, "Older ones have not been tested."},
    {"vkd3d-shader", 2, 1, "Older ones have not been tested."},
};

// The first word that begins with a digit: "22.3.6".
absl::string_view NumberIn(absl::string_view version) {
  for (const absl::string_view word : absl::StrSplit(version, ' ')) {
    if (!word.empty() && absl::ascii_isdigit(word[0])) {
      return word.substr(0, word.find_first_not_of("0123456789."));
    }
  }
  return "";
}

}  // namespace

absl::Span<const DriverRequirement> DriverRequirements() { return kRequirements; }

std::string OldDriver::Sentence() const {
  return absl::StrCat(driver, " is version ", version, "; ", required, " or newer is needed. ",
                      why);
}

std::optional<OldDriver> FindOldDriver(absl::string_view name, absl::string_view version) {
  const absl::string_view number = NumberIn(version);
  const std::vector<absl::string_view> parts = absl::StrSplit(number, '.');
  std::pair<uint32_t, uint32_t> present;
  if (!absl::SimpleAtoi(parts[0], &present.first)) return std::nullopt;
  if (parts.size() > 1 && !absl::SimpleAtoi(parts[1], &present.second)) return std::nullopt;
  for (const DriverRequirement& requirement : kRequirements) {
    if (name != requirement.driver &&
        !absl::StartsWith(version, absl::StrCat(requirement.driver, " "))) {
      continue;
    }
    if (present >= std::pair(requirement.major, requirement.minor)) return std::nullopt;
    return OldDriver{.driver = std::string(name),
                     .version = std::string(number),
                     .required = absl::StrCat(requirement.major, ".", requirement.minor),
                     .why = std::string(requirement.why)};
  }
  return std::nullopt;
}

}  // namespace opmill
