#include "kernels/descriptor/feature_levels.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

using enum DataType;
using enum OperatorGroup;

constexpr DataTypeSet kFloats = {kFloat32, kFloat16};
constexpr DataTypeSet kIntegers32 = {kInt32, kUint32};
constexpr DataTypeSet kIntegers64 = {kInt64, kUint64};
constexpr DataTypeSet kEightTypes =
    kFloats | kIntegers32 | DataTypeSet{kInt16, kInt8, kUint16, kUint8};
constexpr DataTypeSet kTenTypes = kEightTypes | kIntegers64;
constexpr DataTypeSet kArgIndices = kIntegers32 | kIntegers64;
constexpr DataTypeSet kNoIndices = {};

// clang-format off
constexpr FeatureLevelRow kTable[] = {
    // group            level               ranks  input                                index
    {kArgReduce,       FeatureLevel::k4_1, 1, 8, kTenTypes, kArgIndices},
    {kArgReduce,       FeatureLevel::k3_0, 1, 8, kEightTypes, kArgIndices},

    {kReduceArg,       FeatureLevel::k4_1, 1, 8, kTenTypes, kArgIndices},
    {kReduceArg,       FeatureLevel::k3_0, 1, 8, kEightTypes, kArgIndices},
    {kReduceArg,       FeatureLevel::k2_1, 4, 4, kEightTypes, {kUint32}},
    {kReduceArg,       FeatureLevel::k1_0, 4, 4, kFloats, {kUint32}},

    {kReduceAverage,   FeatureLevel::k3_0, 1, 8, kFloats, kNoIndices},
    {kReduceAverage,   FeatureLevel::k1_0, 4, 4, kFloats, kNoIndices},

    {kReduceSumSquare, FeatureLevel::k5_0, 1, 8, kFloats | kIntegers32 | kIntegers64, kNoIndices},
    {kReduceSumSquare, FeatureLevel::k3_0, 1, 8, kFloats, kNoIndices},
    {kReduceSumSquare, FeatureLevel::k1_0, 4, 4, kFloats, kNoIndices},

    {kReduceMinMax,    FeatureLevel::k5_0, 1, 8, kTenTypes, kNoIndices},
    {kReduceMinMax,    FeatureLevel::k3_0, 1, 8, kEightTypes, kNoIndices},
    {kReduceMinMax,    FeatureLevel::k2_1, 4, 4, kFloats | kIntegers32, kNoIndices},
    {kReduceMinMax,    FeatureLevel::k1_0, 4, 4, kFloats, kNoIndices},

    {kReduceSum,       FeatureLevel::k5_0, 1, 8, kFloats | kIntegers32 | kIntegers64, kNoIndices},
    {kReduceSum,       FeatureLevel::k3_0, 1, 8, kFloats | kIntegers32, kNoIndices},
    {kReduceSum,       FeatureLevel::k2_1, 4, 4, kFloats | kIntegers32, kNoIndices},
    {kReduceSum,       FeatureLevel::k1_0, 4, 4, kFloats, kNoIndices},

    {kTopK1,           FeatureLevel::k5_0, 1, 8, kTenTypes, {kUint64, kUint32}},
    {kTopK1,           FeatureLevel::k3_1, 1, 8, kEightTypes, {kUint32}},
    {kTopK1,           FeatureLevel::k2_1, 4, 4, kEightTypes, {kUint32}},
    {kTopK,            FeatureLevel::k2_0, 4, 4, kFloats, {kUint32}},

    {kHardmax1,        FeatureLevel::k5_1, 1, 8, kFloats, kNoIndices},
    {kHardmax,         FeatureLevel::k3_0, 1, 8, kFloats, kNoIndices},
    {kHardmax,         FeatureLevel::k2_0, 4, 5, kFloats, kNoIndices},
    {kHardmax,         FeatureLevel::k1_0, 4, 4, kFloats, kNoIndices},
};
// clang-format on

struct GroupsVisitor {
  std::vector<OperatorGroup> operator()(const ArgReduceDesc&) const { return {kArgReduce}; }
  std::vector<OperatorGroup> operator()(const ReduceDesc& desc) const {
    return {GroupOf(desc.function)};
  }
  std::vector<OperatorGroup> operator()(const TopKDesc& desc) const {
    if (desc.axis_direction == AxisDirection::kDecreasing) return {kTopK1, kTopK};
    return {kTopK1};
  }
  std::vector<OperatorGroup> operator()(const HardmaxDesc& desc) const {
    if (IsPlainHardmax(desc)) return {kHardmax1, kHardmax};
    return {kHardmax1};
  }
};

}  // namespace

bool IsKnown(FeatureLevel level) {
  return std::find(kAllFeatureLevels.begin(), kAllFeatureLevels.end(), level) !=
         kAllFeatureLevels.end();
}

std::string ToString(FeatureLevel level) {
  const uint32_t value = static_cast<uint32_t>(level);
  return absl::StrCat(value >> 12, ".", (value >> 8) & 0xF);
}

absl::StatusOr<FeatureLevel> ParseFeatureLevel(absl::string_view text) {
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

absl::Span<const FeatureLevelRow> FeatureLevelTable() { return kTable; }

OperatorGroup GroupOf(ReduceFunction function) {
  switch (function) {
    case ReduceFunction::kArgMax:
    case ReduceFunction::kArgMin:
      return kReduceArg;
    case ReduceFunction::kAverage:
    case ReduceFunction::kL2:
    case ReduceFunction::kLogSum:
    case ReduceFunction::kLogSumExp:
      break;
    case ReduceFunction::kL1:
    case ReduceFunction::kSumSquare:
      return kReduceSumSquare;
    case ReduceFunction::kMax:
    case ReduceFunction::kMin:
      return kReduceMinMax;
    case ReduceFunction::kMultiply:
    case ReduceFunction::kSum:
      return kReduceSum;
  }
  return kReduceAverage;
}

const FeatureLevelRow* RowAt(OperatorGroup group, FeatureLevel level) {
  for (const FeatureLevelRow& row : kTable) {
    if (row.group == group && row.level <= level) return &row;
  }
  return nullptr;
}

uint32_t EffectiveRank(const std::vector<uint32_t>& sizes) {
  const auto first = std::find_if(sizes.begin(), sizes.end(), [](uint32_t s) { return s != 1; });
  return static_cast<uint32_t>(sizes.end() - first);
}

bool IsPlainHardmax(const HardmaxDesc& desc) {
  const size_t rank = desc.input.sizes.size();
  return desc.axes.size() == 1 && desc.axes[0] + size_t{1} == rank &&
         EffectiveRank(desc.input.sizes) <= 2;
}

std::vector<const FeatureLevelRow*> RowsFor(const OperatorDesc& desc) {
  std::vector<const FeatureLevelRow*> rows;
  rows.reserve(std::size(kTable));
  for (const OperatorGroup group : std::visit(GroupsVisitor(), desc)) {
    for (const FeatureLevelRow& row : kTable) {
      if (row.group == group) rows.push_back(&row);
    }
  }
  return rows;
}

}  // namespace opmill
