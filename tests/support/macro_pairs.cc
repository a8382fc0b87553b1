#include "tests/support/macro_pairs.h"

#include "absl/strings/str_cat.h"

namespace opmill {

static std::string Entry(const KernelPermutation& kernel) {
  return absl::StrCat(kernel.shader, " ", kernel.entry);
}

std::vector<std::string> MacroValues(const KernelPermutation& kernel) {
  std::vector<std::string> values;
  if (kernel.macros.empty()) values.push_back(Entry(kernel));
  for (const ShaderMacro& macro : kernel.macros) {
    values.push_back(absl::StrCat(Entry(kernel), " ", macro.name, "=", macro.value));
  }
  return values;
}

std::vector<std::string> MacroPairs(const KernelPermutation& kernel) {
  std::vector<std::string> pairs;
  for (const ShaderMacro& a : kernel.macros) {
    for (const ShaderMacro& b : kernel.macros) {
      if (a.name >= b.name) continue;
      pairs.push_back(
          absl::StrCat(Entry(kernel), " ", a.name, "=", a.value, " ", b.name, "=", b.value));
    }
  }
  return pairs;
}

}  // namespace opmill
