#include "tests/support/macro_pairs.h"

#include "absl/strings/str_cat.h"

namespace opmill {

std::vector<std::string> MacroPairs(const KernelPermutation& kernel) {
  const std::string entry = absl::StrCat(kernel.shader, " ", kernel.entry);
  std::vector<std::string> pairs;
  if (kernel.macros.empty()) pairs.push_back(entry);
  for (const ShaderMacro& a : kernel.macros) {
    for (const ShaderMacro& b : kernel.macros) {
      if (a.name > b.name) continue;
      pairs.push_back(absl::StrCat(entry, " ", a.name, "=", a.value, " ", b.name, "=", b.value));
    }
  }
  return pairs;
}

}  // namespace opmill
