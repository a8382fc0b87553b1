#include "kernels/d3d12/adapter/adapters.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace opmill {
namespace {

bool IsWanted(const AdapterInfo& adapter, AdapterChoice choice, absl::string_view wanted) {
  if (choice == AdapterChoice::kHardware && adapter.kind != DeviceKind::kHardware) return false;
  if (choice == AdapterChoice::kSoftware && adapter.kind != DeviceKind::kSoftware) return false;
  if (wanted.empty()) return true;
  uint32_t index;
  if (absl::SimpleAtoi(wanted, &index)) return adapter.index == index;
  return absl::StrContains(absl::AsciiStrToLower(adapter.name), absl::AsciiStrToLower(wanted));
}

}  // namespace

absl::StatusOr<std::vector<AdapterInfo>> ChooseAdapters(absl::Span<const AdapterInfo> adapters,
                                                        AdapterChoice choice,
                                                        absl::string_view wanted) {
  std::vector<AdapterInfo> chosen;
  for (const AdapterInfo& adapter : adapters) {
    if (IsWanted(adapter, choice, wanted)) chosen.push_back(adapter);
  }
  std::stable_partition(chosen.begin(), chosen.end(), [](const AdapterInfo& adapter) {
    return adapter.kind == DeviceKind::kHardware;
  });
  if (!chosen.empty()) return chosen;

  const absl::string_view kind = choice == AdapterChoice::kHardware   ? "hardware "
                                 : choice == AdapterChoice::kSoftware ? "software "
                                                                      : "";
  const std::string named = wanted.empty() ? "" : absl::StrCat(" called '", wanted, "'");
  const std::string present =
      absl::StrJoin(adapters, ", ", [](std::string* out, const AdapterInfo& adapter) {
        absl::StrAppend(out, adapter.index, " ", adapter.name,
                        adapter.kind == DeviceKind::kSoftware ? " (software)" : " (hardware)");
      });
  return absl::NotFoundError(absl::StrCat("This machine has no ", kind, "adapter", named,
                                          "; it has: ", present.empty() ? "none" : present, "."));
}

}  // namespace opmill
