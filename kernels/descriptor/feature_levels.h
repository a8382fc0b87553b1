// DirectML's feature levels, and the one table of what each operator takes at which of them.
#ifndef OPMILL_KERNELS_DESCRIPTOR_FEATURE_LEVELS_H_
#define OPMILL_KERNELS_DESCRIPTOR_FEATURE_LEVELS_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/descriptor/operator_desc.h"

namespace opmill {

// DirectML's own values (DML_FEATURE_LEVEL).
enum class FeatureLevel : uint32_t {
  k1_0 = 0x1000,
  k2_0 = 0x2000,
  k2_1 = 0x2100,
  k3_0 = 0x3000,
  k3_1 = 0x3100,
  k4_0 = 0x4000,
  k4_1 = 0x4100,
  k5_0 = 0x5000,
  k5_1 = 0x5100,
  k5_2 = 0x5200,
  k6_0 = 0x6000,
  k6_1 = 0x6100,
  k6_2 = 0x6200,
  k6_3 = 0x6300,
  k6_4 = 0x6400,
};

inline constexpr std::array<FeatureLevel, 15> kAllFeatureLevels = {
    FeatureLevel::k1_0, FeatureLevel::k2_0, FeatureLevel::k2_1, FeatureLevel::k3_0,
    FeatureLevel::k3_1, FeatureLevel::k4_0, FeatureLevel::k4_1, FeatureLevel::k5_0,
    FeatureLevel::k5_1, FeatureLevel::k5_2, FeatureLevel::k6_0, FeatureLevel::k6_1,
    FeatureLevel::k6_2, FeatureLevel::k6_3, FeatureLevel::k6_4};
inline constexpr FeatureLevel kNewestFeatureLevel = FeatureLevel::k6_4;

bool IsKnown(FeatureLevel level);
std::string ToString(FeatureLevel level);  // "5.1"
absl::StatusOr<FeatureLevel> ParseFeatureLevel(absl::string_view text);

// A set of data types, small enough to be a constant.
class DataTypeSet {
 public:
  constexpr DataTypeSet() = default;
  constexpr DataTypeSet(std::initializer_list<DataType> types) {
    for (const DataType type : types) bits_ |= Bit(type);
  }
  constexpr bool Contains(DataType type) const { return (bits_ & Bit(type)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  friend constexpr DataTypeSet operator|(DataTypeSet a, DataTypeSet b) {
    a.bits_ |= b.bits_;
    return a;
  }
  friend constexpr bool operator==(DataTypeSet, DataTypeSet) = default;

  std::vector<DataType> types() const;  // in the order of kAllDataTypes
  std::string ToString() const;         // "FLOAT32, FLOAT16"

 private:
  static constexpr uint32_t Bit(DataType type) {
    const uint32_t value = static_cast<uint32_t>(type);
    return value < 32 ? 1u << value : 0;
  }
  uint32_t bits_ = 0;
};

// Operators and functions that share their rows.
enum class OperatorGroup : uint32_t {
  kArgReduce,        // ARGMIN, ARGMAX
  kReduceArg,        // REDUCE ARGMIN, ARGMAX
  kReduceAverage,    // REDUCE AVERAGE, L2, LOG_SUM, LOG_SUM_EXP
  kReduceSumSquare,  // REDUCE L1, SUM_SQUARE
  kReduceMinMax,     // REDUCE MIN, MAX
  kReduceSum,        // REDUCE MULTIPLY, SUM
  kTopK1,            // TOP_K1
  kTopK,             // TOP_K, where it goes beyond TOP_K1: kDecreasing at an older level
  kHardmax1,         // ACTIVATION_HARDMAX1
  kHardmax,          // ACTIVATION_HARDMAX: the last axis, effective rank at most 2
};

struct FeatureLevelRow {
  OperatorGroup group;
  FeatureLevel level;  // holds from here on, until a newer row of the group
  uint32_t min_rank;
  uint32_t max_rank;
  DataTypeSet types;        // of the input; an output of values has the input's type
  DataTypeSet index_types;  // of an output of indices; empty where the group has none
};

// All rows, those of a group newest first. A newer row allows all that an older one does.
absl::Span<const FeatureLevelRow> FeatureLevelTable();

OperatorGroup GroupOf(ReduceFunction function);
// The newest row of `group` at `level`; null where the level does not have the group.
const FeatureLevelRow* RowAt(OperatorGroup group, FeatureLevel level);

// DirectML's effective rank: dimensions, not counting leftmost ones of size 1.
uint32_t EffectiveRank(const std::vector<uint32_t>& sizes);
// True when ACTIVATION_HARDMAX, which takes no axes, says the same.
bool IsPlainHardmax(const HardmaxDesc& desc);

// The rows that can serve a lawful `desc` at some level, newest first. Which rows those are is a
// matter of the operator, its function, and where the older operator is narrower (TOP_K,
// ACTIVATION_HARDMAX) of direction, axes and sizes.
std::vector<const FeatureLevelRow*> RowsFor(const OperatorDesc& desc);

}  // namespace opmill

#endif  // OPMILL_KERNELS_DESCRIPTOR_FEATURE_LEVELS_H_
