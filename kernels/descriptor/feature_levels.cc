#include "kernels/descriptor/feature_levels.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"

namespace opmill {

bool IsKnown(FeatureLevel level) {
  return std::find(kAllFeatureLevels.begin(), kAllFeatureLevels.end(), level) !=
         kAllFeatureLevels.end();
}

std::string ToString(FeatureLevel level) {
  const uint32_t value = static_cast<uint32_t>(level);
  return absl::StrCat(value >> 12, ".", (value >> 8) & 0xF);
}

absl::StatusOr<FeatureLevel> FeatureLevelFrom(absl::string_view text) {
  for (const FeatureLevel level : kAllFeatureLevels) {
    if (text == ToString(level)) return level;
  }
  return InvalidField("feature_level",
                      absl::StrCat("feature_level \"", text, "\" is none of ",
                                   absl::StrJoin(kAllFeatureLevels, ", ",
                                                 [](std::string* out, FeatureLevel level) {
                                                   absl::StrAppend(out, ToString(level));
                                                 }),
                                   "."));
}

std::vector<DataType> DataTypeSet::types() const {
  std::vector<DataType> types;
  for (const DataType type : kAllDataTypes) {
    if (Contains(type)) types.push_back(type);
  }
  return types;
}

std::string DataTypeSet::ToString() const {
  return absl::StrJoin(types(), ", ", [](std::string* out, DataType type) {
    absl::StrAppend(out, opmill::ToString(type));
  });
}

uint32_t EffectiveRank(const std::vector<uint32_t>& sizes) {
  const auto first = std::find_if(sizes.begin(), sizes.end(), [](uint32_t s) { return s != 1; });
  return static_cast<uint32_t>(sizes.end() - first);
}

}  // namespace opmill
