// DirectML's feature levels, and the rows in which a schema says what an operator supports at each
// level.
#ifndef OPMILL_KERNELS_DESCRIPTOR_FEATURE_LEVELS_H_
#define OPMILL_KERNELS_DESCRIPTOR_FEATURE_LEVELS_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {

// The values of DML_FEATURE_LEVEL.
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
absl::StatusOr<FeatureLevel> FeatureLevelFrom(absl::string_view text);

// A set of data types, usable in constant expressions.
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

inline constexpr DataTypeSet kFloats = {DataType::kFloat32, DataType::kFloat16};
inline constexpr DataTypeSet kIntegers32 = {DataType::kInt32, DataType::kUint32};
inline constexpr DataTypeSet kIntegers64 = {DataType::kInt64, DataType::kUint64};
inline constexpr DataTypeSet kEightTypes =
    kFloats | kIntegers32 |
    DataTypeSet{DataType::kInt16, DataType::kInt8, DataType::kUint16, DataType::kUint8};
inline constexpr DataTypeSet kTenTypes = kEightTypes | kIntegers64;

// The type variables of an operator. Tensors of one variable have one type.
enum class TypeVariable : uint32_t {
  kValue,   // inputs, and outputs of values
  kIndex,   // an output that may hold indices, of a type that the caller may choose
  kResult,  // another output whose type the caller may choose: truth values, the result of a cast
  kOther,   // an input of another type, such as a condition
};

struct FeatureLevelRow {
  FeatureLevel level;  // applies from this level on, until a newer row
  uint32_t min_rank;
  uint32_t max_rank;
  DataTypeSet types;
  DataTypeSet result_types = {};  // of kIndex or kResult; empty: outputs have the inputs' type
  DataTypeSet other_types = {};

  constexpr DataTypeSet TypesOf(TypeVariable variable) const {
    return variable == TypeVariable::kValue   ? types
           : variable == TypeVariable::kOther ? other_types
                                              : result_types;
  }
};

// DirectML's effective rank: the number of dimensions without leading ones of size 1.
uint32_t EffectiveRank(const std::vector<uint32_t>& sizes);

}  // namespace opmill

#endif  // OPMILL_KERNELS_DESCRIPTOR_FEATURE_LEVELS_H_
