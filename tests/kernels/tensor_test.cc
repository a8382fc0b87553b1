#include "kernels/descriptor/tensor.h"

#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;

TensorDesc Float(std::vector<uint32_t> sizes, std::vector<uint32_t> strides = {}) {
  return {DataType::kFloat32, std::move(sizes), std::move(strides)};
}

// Every element's offset by enumeration: the expected result of the overlap search.
bool OverlapsByEnumeration(const TensorDesc& desc) {
  const std::vector<uint32_t> strides = EffectiveStrides(desc);
  std::set<uint64_t> seen;
  for (uint64_t element = 0; element < ElementCount(desc); ++element) {
    uint64_t rest = element;
    uint64_t offset = 0;
    for (size_t axis = desc.sizes.size(); axis-- > 0;) {
      offset += rest % desc.sizes[axis] * strides[axis];
      rest /= desc.sizes[axis];
    }
    if (!seen.insert(offset).second) return true;
  }
  return false;
}

TEST(Tensor, KnowsItsTypes) {
  struct Row {
    DataType type;
    const char* name;
    uint32_t bytes;
    bool is_float;
    bool is_signed;
  };
  const Row rows[] = {
      {DataType::kFloat32, "FLOAT32", 4, true, true},
      {DataType::kFloat16, "FLOAT16", 2, true, true},
      {DataType::kInt64, "INT64", 8, false, true},
      {DataType::kInt32, "INT32", 4, false, true},
      {DataType::kInt16, "INT16", 2, false, true},
      {DataType::kInt8, "INT8", 1, false, true},
      {DataType::kUint64, "UINT64", 8, false, false},
      {DataType::kUint32, "UINT32", 4, false, false},
      {DataType::kUint16, "UINT16", 2, false, false},
      {DataType::kUint8, "UINT8", 1, false, false},
      {DataType::kFloat64, "FLOAT64", 0, false, false},
      {DataType::kUnknown, "UNKNOWN", 0, false, false},
      {static_cast<DataType>(99), "UNKNOWN", 0, false, false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(ToString(row.type), row.name);
    EXPECT_EQ(ElementBytes(row.type), row.bytes) << row.name;
    EXPECT_EQ(IsFloat(row.type), row.is_float) << row.name;
    EXPECT_EQ(IsSigned(row.type), row.is_signed) << row.name;
  }
}

TEST(Tensor, CountsBytesToTheLastElementRoundedUpTo4) {
  struct Row {
    TensorDesc desc;
    uint64_t bytes;
  };
  const Row rows[] = {
      {Float({2, 3}), 24},
      {Float({2, 3}, {4, 1}), 28},
      {Float({2, 3}, {0, 0}), 4},
      {{DataType::kUint8, {5}, {}}, 8},
      {{DataType::kUint8, {1}, {77}}, 4},
      {{DataType::kFloat16, {3}, {}}, 8},
      {{DataType::kInt64, {3}, {}}, 24},
      {{DataType::kUint8, {65536, 65535}, {}}, 0xFFFF'0000},
      // 32-bit arithmetic would wrap here.
      {Float({0xFFFF'FFFF}), 0x3'FFFF'FFFC},
      {Float({2, 2}, {0xFFFF'FFFF, 0xFFFF'FFFF}), 0x7'FFFF'FFFC},
      {{DataType::kUint8, {0xFFFF'FFFF}, {0xFFFF'FFFE}}, 0xFFFF'FFFC'0000'0008},
  };
  for (const Row& row : rows) EXPECT_EQ(RequiredBytes(row.desc), row.bytes) << ToString(row.desc);
  EXPECT_EQ(SpannedBytes({DataType::kUint8, {5}, {}}), 5u);
  EXPECT_EQ(SpannedBytes({DataType::kFloat16, {2, 3}, {4, 1}}), 14u);
}

TEST(Tensor, PacksRowMajor) {
  EXPECT_THAT(PackedStrides({2, 3, 4}), ElementsAre(12, 4, 1));
  EXPECT_THAT(EffectiveStrides(Float({2, 3})), ElementsAre(3, 1));
  EXPECT_THAT(EffectiveStrides(Float({2, 3}, {1, 2})), ElementsAre(1, 2));
  EXPECT_EQ(ElementCount(Float({65536, 65535})), 0xFFFF'0000u);
  EXPECT_EQ(ToString(Float({2, 3}, {4, 1})), "FLOAT32[2,3] strides [4,1]");
  EXPECT_EQ(ToString(Float({2, 3})), "FLOAT32[2,3]");
}

TEST(Tensor, IsPackedWhateverTheStridesOfSize1Say) {
  EXPECT_TRUE(IsPacked(Float({2, 3})));
  EXPECT_TRUE(IsPacked(Float({2, 3}, {3, 1})));
  EXPECT_TRUE(IsPacked(Float({2, 1, 3}, {3, 99, 1})));
  EXPECT_FALSE(IsPacked(Float({2, 3}, {4, 1})));
  EXPECT_FALSE(IsPacked(Float({2, 3}, {1, 2})));
  EXPECT_FALSE(IsPacked(Float({2, 3}, {0, 1})));
}

TEST(TensorOverlap, IsFoundInAwkwardStrides) {
  struct Row {
    TensorDesc desc;
    Overlap overlap;
  };
  const Row rows[] = {
      {Float({4}), Overlap::kNone},
      {Float({1}, {0}), Overlap::kNone},
      {Float({2}, {0}), Overlap::kSome},
      {Float({1, 2}, {0, 1}), Overlap::kNone},
      {Float({3, 2}, {2, 3}), Overlap::kNone},  // 0 3 2 5 4 7
      {Float({4, 2}, {2, 3}), Overlap::kNone},  // 0 3 2 5 4 7 6 9
      {Float({4, 3}, {2, 3}), Overlap::kSome},  // 2 * 3 == 3 * 2
      {Float({2, 2}, {1, 1}), Overlap::kSome},
      {Float({2, 2}, {5, 5}), Overlap::kSome},
      {Float({3, 3}, {2, 1}), Overlap::kSome},
      {Float({2, 3}, {1, 2}), Overlap::kNone},
      {Float({65535, 65536}, {65536, 65535}), Overlap::kNone},
      {Float({65537, 65535}, {65536, 65537}), Overlap::kNone},
      {Float({65536, 65535}, {1000, 999}), Overlap::kSome},
      {Float({16, 16, 16, 16, 16, 16, 16, 15},
             {268435456, 16777216, 1048576, 65536, 4096, 256, 16, 1}),
       Overlap::kNone},
      // Steps of 2^32 in both directions, but never to the same location.
      {Float({2, 2, 2}, {0xFFFF'FFFF, 0xFFFF'FFFE, 2}), Overlap::kNone},
      {Float({2, 2, 2}, {0xFFFF'FFFF, 0xFFFF'FFFE, 1}), Overlap::kSome},
      {{DataType::kUint8, {0xFFFF'FFFF}, {0xFFFF'FFFE}}, Overlap::kNone},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(FindOverlap(row.desc), row.overlap) << ToString(row.desc);
    EXPECT_EQ(HasOverlap(row.desc), row.overlap != Overlap::kNone) << ToString(row.desc);
    if (ElementCount(row.desc) < 10000) {
      EXPECT_EQ(OverlapsByEnumeration(row.desc), row.overlap == Overlap::kSome)
          << ToString(row.desc);
    }
  }
}

TEST(TensorOverlap, AgreesWithEnumerationOnRandomStrides) {
  std::mt19937 random(20);
  int overlapping = 0;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    TensorDesc desc = Float({});
    const uint32_t rank = 1 + random() % 4;
    for (uint32_t i = 0; i < rank; ++i) {
      desc.sizes.push_back(1 + random() % 5);
      desc.strides.push_back(1 + random() % 60);
    }
    const bool overlaps = OverlapsByEnumeration(desc);
    overlapping += overlaps;
    ASSERT_EQ(FindOverlap(desc), overlaps ? Overlap::kSome : Overlap::kNone) << ToString(desc);
  }
  // Both results occurred often.
  EXPECT_GT(overlapping, kRounds / 10);
  EXPECT_LT(overlapping, kRounds * 9 / 10);
}

TEST(TensorOverlap, GivesUpALongSearch) {
  EXPECT_EQ(FindOverlap(Float({1600, 1600, 1600}, {4294967291, 3637190087, 2718281801})),
            Overlap::kUndecided);
  // Crossing strides beyond what signed 64-bit sums hold.
  EXPECT_EQ(FindOverlap({DataType::kFloat16, {0x6000'0000, 2}, {0xFFFF'FFFE, 0xFFFF'FFFF}}),
            Overlap::kUndecided);
}

}  // namespace
}  // namespace opmill
