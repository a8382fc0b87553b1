#include "client/npy_cast.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "client/array_text.h"
#include "client/names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/bytes_of.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;

constexpr float kInf = std::numeric_limits<float>::infinity();

// The elements as `type`, which is stored in To.
template <typename To, typename From>
absl::StatusOr<std::vector<To>> Cast(const NpyDtype& dtype, const std::vector<From>& elements,
                                     v1::DataType type) {
  const NpyHeader header{.dtype = dtype, .sizes = {static_cast<uint32_t>(elements.size())}};
  std::vector<To> out(elements.size());
  absl::Status status =
      CastElements(header, BytesOf(elements), type, reinterpret_cast<std::byte*>(out.data()));
  if (!status.ok()) return status;
  return out;
}

template <typename To, typename From>
std::string CastRefusal(const NpyDtype& dtype, const std::vector<From>& elements,
                        v1::DataType type) {
  return std::string((Cast<To>(dtype, elements, type).status().message()));
}

TEST(CastElements, RoundsFloat64ToTheNearestFloat) {
  const std::vector<double> elements = {0.1, -0.0, 1 + 0x1p-24, 1 + 0x1.8p-23, INFINITY, 1e-50};
  const auto cast = Cast<float>({'f', 8}, elements, v1::DATA_TYPE_FLOAT32);
  ASSERT_TRUE(cast.ok()) << cast.status();
  EXPECT_THAT(*cast, ElementsAre(0.1f, -0.0f, 1, 1 + 0x1p-22f, kInf, 0));
  EXPECT_TRUE(std::signbit((*cast)[1]));
  const auto nan = Cast<float>({'f', 8}, std::vector<double>{NAN}, v1::DATA_TYPE_FLOAT32);
  EXPECT_TRUE(std::isnan(nan->at(0)));
}

TEST(CastElements, WidensHalvesExactly) {
  const std::vector<uint16_t> halves = {0x3C00, 0x0001, 0xFC00, 0x7BFF};
  const auto cast = Cast<float>({'f', 2}, halves, v1::DATA_TYPE_FLOAT32);
  ASSERT_TRUE(cast.ok()) << cast.status();
  EXPECT_THAT(*cast, ElementsAre(1, 0x1p-24f, -kInf, 65504));
}

TEST(CastElements, SwapsBigEndianBytes) {
  const auto floats = Cast<float>({'f', 4, true}, std::vector<uint32_t>{0x0000803F, 0x000020C1},
                                  v1::DATA_TYPE_FLOAT32);
  EXPECT_THAT(*floats, ElementsAre(1, -10));
  const auto integers =
      Cast<int64_t>({'i', 2, true}, std::vector<uint16_t>{0xFEFF, 0x0001}, v1::DATA_TYPE_INT64);
  EXPECT_THAT(*integers, ElementsAre(-2, 256));
}

TEST(CastElements, TakesBoolAsZeroAndOne) {
  const auto cast = Cast<uint32_t>({'b', 1}, std::vector<uint8_t>{0, 1, 7}, v1::DATA_TYPE_UINT32);
  EXPECT_THAT(*cast, ElementsAre(0, 1, 1));
}

TEST(CastElements, AcceptsOnlyIntegersThatFit) {
  using Limits = std::numeric_limits<int64_t>;
  const auto cast = Cast<int8_t>({'i', 8}, std::vector<int64_t>{-128, 127, 0}, v1::DATA_TYPE_INT8);
  EXPECT_THAT(*cast, ElementsAre(-128, 127, 0));
  EXPECT_EQ(CastRefusal<int8_t>({'i', 8}, std::vector<int64_t>{0, 128, 200}, v1::DATA_TYPE_INT8),
            "The array's value 128 at [1] does not fit into int8.");
  EXPECT_EQ(CastRefusal<uint64_t>({'i', 8}, std::vector<int64_t>{-1}, v1::DATA_TYPE_UINT64),
            "The array's value -1 at [0] does not fit into uint64.");
  EXPECT_EQ(
      CastRefusal<int64_t>({'u', 8}, std::vector<uint64_t>{uint64_t{1} << 63}, v1::DATA_TYPE_INT64),
      "The array's value 9223372036854775808 at [0] does not fit into int64.");
  const auto rounded =
      Cast<float>({'i', 8}, std::vector<int64_t>{Limits::max(), 16777217}, v1::DATA_TYPE_FLOAT32);
  EXPECT_THAT(*rounded, ElementsAre(0x1p63f, 16777216));
}

TEST(CastElements, RefusesFiniteValuesThatWouldBecomeInfinite) {
  EXPECT_EQ(CastRefusal<float>({'f', 8}, std::vector<double>{1, -1e300}, v1::DATA_TYPE_FLOAT32),
            "The array's value -1e+300 at [1] does not fit into float32.");
  EXPECT_EQ(CastRefusal<uint16_t>({'i', 4}, std::vector<int32_t>{65520}, v1::DATA_TYPE_FLOAT16),
            "The array's value 65520 at [0] does not fit into float16.");
  EXPECT_THAT(*Cast<uint16_t>({'i', 4}, std::vector<int32_t>{65519}, v1::DATA_TYPE_FLOAT16),
              ElementsAre(0x7BFF));
}

TEST(CastElements, NamesThePlaceInBothOrders) {
  const std::vector<int16_t> elements = {0, 0, 0, 0, 300, 0};
  NpyHeader header{.dtype = {'i', 2}, .sizes = {2, 3}};
  std::vector<std::byte> out(elements.size());
  EXPECT_EQ(CastElements(header, BytesOf(elements), v1::DATA_TYPE_UINT8, out.data()).message(),
            "The array's value 300 at [1, 1] does not fit into uint8.");
  header.fortran_order = true;
  EXPECT_EQ(CastElements(header, BytesOf(elements), v1::DATA_TYPE_UINT8, out.data()).message(),
            "The array's value 300 at [0, 2] does not fit into uint8.");
}

TEST(CheckCast, RefusesIntegersFromFloats) {
  EXPECT_EQ(
      CheckCast({'f', 8}, v1::DATA_TYPE_INT32).message(),
      "The array's type is float64, but floats are not cast to integers (int32), because that "
      "would lose the fraction; cast to float32 or float16.");
  EXPECT_TRUE(CheckCast({'f', 8}, v1::DATA_TYPE_FLOAT16).ok());
  EXPECT_TRUE(CheckCast({'b', 1}, v1::DATA_TYPE_FLOAT16).ok());
}

TEST(CastElements, TakesEveryPairOfTypes) {
  const NpyDtype dtypes[] = {{'f', 8}, {'f', 4}, {'f', 2}, {'i', 8}, {'i', 4}, {'i', 2},
                             {'i', 1}, {'u', 8}, {'u', 4}, {'u', 2}, {'u', 1}, {'b', 1}};
  for (const NpyDtype& dtype : dtypes) {
    std::byte one[8] = {};
    const NpyHeader header{.dtype = dtype, .sizes = {1}};
    const uint64_t bits = dtype.kind != 'f'  ? 1
                          : dtype.bytes == 8 ? std::bit_cast<uint64_t>(1.0)
                          : dtype.bytes == 4 ? std::bit_cast<uint32_t>(1.0f)
                                             : 0x3C00;
    std::memcpy(one, &bits, sizeof(one));
    for (int type = 1; type <= v1::DataType_MAX; ++type) {
      const auto to = static_cast<v1::DataType>(type);
      if (ElementBytes(to) == 0 || !CheckCast(dtype, to).ok()) continue;
      std::byte out[8] = {};
      ASSERT_TRUE(CastElements(header, {one, dtype.bytes}, to, out).ok());
      EXPECT_EQ(NumberAt(to, out), 1) << dtype.kind << int{dtype.bytes} << NameOf(to);
    }
  }
}

}  // namespace
}  // namespace opmill
