#include "client/array_text.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "client/names.h"
#include "gtest/gtest.h"
#include "kernels/base/half.h"

namespace opmill {
namespace {

struct PrintedArray {
  v1::DataType type;
  std::vector<uint32_t> sizes;
  std::vector<uint64_t> bits;
  const char* text;  // print(x) of NumPy 1.24
};

std::vector<std::byte> ArrayBytes(const PrintedArray& array) {
  const size_t size = ElementBytes(array.type);
  std::vector<std::byte> bytes(array.bits.size() * size);
  for (size_t i = 0; i < array.bits.size(); ++i) {
    std::memcpy(&bytes[i * size], &array.bits[i], size);
  }
  return bytes;
}

TEST(ArrayText, MatchesNumPysPrint) {
  const PrintedArray arrays[] = {
      {v1::DATA_TYPE_FLOAT32, {3}, {0x3F800000, 0x40000000, 0x40400000}, R"([1. 2. 3.])"},
      {v1::DATA_TYPE_FLOAT32,
       {2, 3},
       {0x3DCCCCCD, 0xC0200000, 0x447A0000, 0x40E00000, 0x3E800000, 0x80000000},
       R"([[ 1.0e-01 -2.5e+00  1.0e+03]
 [ 7.0e+00  2.5e-01 -0.0e+00]])"},
      {v1::DATA_TYPE_FLOAT32,
       {3},
       {0x3727C5AC, 0x3F800000, 0xC0500000},
       R"([ 1.00e-05  1.00e+00 -3.25e+00])"},
      {v1::DATA_TYPE_FLOAT32, {2}, {0x4CBEBC20, 0x3F800000}, R"([1.e+08 1.e+00])"},
      {v1::DATA_TYPE_FLOAT32, {1}, {0x4CBEBC20}, R"([1.e+08])"},
      {v1::DATA_TYPE_FLOAT32, {2}, {0x3F800000, 0x447A0000}, R"([   1. 1000.])"},
      {v1::DATA_TYPE_FLOAT32, {2}, {0x3F800000, 0x447A2000}, R"([1.0000e+00 1.0005e+03])"},
      {v1::DATA_TYPE_FLOAT32, {2}, {0x38D1B717, 0x3D4CCCCD}, R"([1.e-04 5.e-02])"},
      {v1::DATA_TYPE_FLOAT32,
       {3},
       {0x7F7FFFFF, 0x1, 0x800000},
       R"([3.4028235e+38 1.4012985e-45 1.1754944e-38])"},
      {v1::DATA_TYPE_FLOAT32,
       {4},
       {0x7FC00000, 0x3FC00000, 0x7F800000, 0xFF800000},
       R"([ nan  1.5  inf -inf])"},
      {v1::DATA_TYPE_FLOAT32, {2}, {0x7FC00000, 0x7F800000}, R"([nan inf])"},
      {v1::DATA_TYPE_FLOAT32, {2}, {0xFF800000, 0x7FC00000}, R"([-inf  nan])"},
      {v1::DATA_TYPE_FLOAT32, {2}, {0x7FC00000, 0x60AD78EC}, R"([   nan 1.e+20])"},
      {v1::DATA_TYPE_FLOAT32, {2}, {0x0, 0x0}, R"([0. 0.])"},
      {v1::DATA_TYPE_FLOAT32, {2}, {0x3901742D, 0x3F000000}, R"([1.2345678e-04 5.0000000e-01])"},
      {v1::DATA_TYPE_FLOAT32, {2}, {0x4B800000, 0x4C000000}, R"([16777216. 33554432.])"},
      {v1::DATA_TYPE_FLOAT16,
       {4},
       {0x2E66, 0x7BFF, 0x1, 0xBC00},
       R"([ 1.00e-01  6.55e+04  5.96e-08 -1.00e+00])"},
      {v1::DATA_TYPE_FLOAT16,
       {4},
       {0x2E66, 0x3266, 0x3555, 0xC780},
       R"([ 0.1     0.2     0.3333 -7.5   ])"},
      {v1::DATA_TYPE_FLOAT16, {3}, {0x6C20, 0x6C21, 0x6C22}, R"([4224. 4228. 4232.])"},
      {v1::DATA_TYPE_FLOAT16, {2}, {0x3C00, 0x63D1}, R"([1.0000e+00 1.0005e+03])"},
      {v1::DATA_TYPE_FLOAT16, {2}, {0x400, 0x200}, R"([6.104e-05 3.052e-05])"},
      {v1::DATA_TYPE_INT8, {3}, {0x80, 0x7F, 0}, R"([-128  127    0])"},
      {v1::DATA_TYPE_UINT32, {2, 1}, {0, 0xFFFFFFFF}, R"([[         0]
 [4294967295]])"},
      {v1::DATA_TYPE_INT64,
       {2},
       {0x8000000000000000, 0x7FFFFFFFFFFFFFFF},
       R"([-9223372036854775808  9223372036854775807])"},
      {v1::DATA_TYPE_UINT64,
       {2},
       {0xFFFFFFFFFFFFFFFF, 0},
       R"([18446744073709551615                    0])"},
      {v1::DATA_TYPE_INT16,
       {2, 3, 4},
       {0,   1,   2,   3,   4,    5,    6,    7,    8,    9,    0xA,  0xB,
        0xC, 0xD, 0xE, 0xF, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17},
       R"([[[ 0  1  2  3]
  [ 4  5  6  7]
  [ 8  9 10 11]]

 [[12 13 14 15]
  [16 17 18 19]
  [20 21 22 23]]])"},
      {v1::DATA_TYPE_UINT8, {1, 2, 1, 2, 1, 2}, {0, 1, 2, 3, 4, 5, 6, 7}, R"([[[[[[0 1]]

    [[2 3]]]]



  [[[[4 5]]

    [[6 7]]]]]])"},
      {v1::DATA_TYPE_INT32,
       {40},
       {0,     0x64,  0xC8,  0x12C, 0x190, 0x1F4, 0x258, 0x2BC, 0x320, 0x384,
        0x3E8, 0x44C, 0x4B0, 0x514, 0x578, 0x5DC, 0x640, 0x6A4, 0x708, 0x76C,
        0x7D0, 0x834, 0x898, 0x8FC, 0x960, 0x9C4, 0xA28, 0xA8C, 0xAF0, 0xB54,
        0xBB8, 0xC1C, 0xC80, 0xCE4, 0xD48, 0xDAC, 0xE10, 0xE74, 0xED8, 0xF3C},
       R"([   0  100  200  300  400  500  600  700  800  900 1000 1100 1200 1300
 1400 1500 1600 1700 1800 1900 2000 2100 2200 2300 2400 2500 2600 2700
 2800 2900 3000 3100 3200 3300 3400 3500 3600 3700 3800 3900])"},
      {v1::DATA_TYPE_FLOAT32,
       {2, 30},
       {0x0,        0x3E124925, 0x3E924925, 0x3EDB6DB7, 0x3F124925, 0x3F36DB6E, 0x3F5B6DB7,
        0x3F800000, 0x3F924925, 0x3FA49249, 0x3FB6DB6E, 0x3FC92492, 0x3FDB6DB7, 0x3FEDB6DB,
        0x40000000, 0x40092492, 0x40124925, 0x401B6DB7, 0x40249249, 0x402DB6DB, 0x4036DB6E,
        0x40400000, 0x40492492, 0x40524925, 0x405B6DB7, 0x40649249, 0x406DB6DB, 0x4076DB6E,
        0x40800000, 0x40849249, 0x40892492, 0x408DB6DB, 0x40924925, 0x4096DB6E, 0x409B6DB7,
        0x40A00000, 0x40A49249, 0x40A92492, 0x40ADB6DB, 0x40B24925, 0x40B6DB6E, 0x40BB6DB7,
        0x40C00000, 0x40C49249, 0x40C92492, 0x40CDB6DB, 0x40D24925, 0x40D6DB6E, 0x40DB6DB7,
        0x40E00000, 0x40E49249, 0x40E92492, 0x40EDB6DB, 0x40F24925, 0x40F6DB6E, 0x40FB6DB7,
        0x41000000, 0x41024925, 0x41049249, 0x4106DB6E},
       R"([[0.         0.14285715 0.2857143  0.42857143 0.5714286  0.71428573
  0.85714287 1.         1.1428572  1.2857143  1.4285715  1.5714285
  1.7142857  1.8571428  2.         2.142857   2.2857144  2.4285715
  2.5714285  2.7142856  2.857143   3.         3.142857   3.2857144
  3.4285715  3.5714285  3.7142856  3.857143   4.         4.142857  ]
 [4.285714   4.428571   4.571429   4.714286   4.857143   5.
  5.142857   5.285714   5.428571   5.571429   5.714286   5.857143
  6.         6.142857   6.285714   6.428571   6.571429   6.714286
  6.857143   7.         7.142857   7.285714   7.428571   7.571429
  7.714286   7.857143   8.         8.142858   8.285714   8.428572  ]])"},
      {v1::DATA_TYPE_UINT8,
       {1, 1, 1, 37},
       {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9,
        9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9},
       R"([[[[9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9
    9 9 9]]]])"},
      {v1::DATA_TYPE_UINT8,
       {1, 36},
       {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9,
        9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9},
       R"([[9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9]])"},
  };
  for (const PrintedArray& array : arrays) {
    EXPECT_EQ(ArrayText(array.type, array.sizes, ArrayBytes(array)), array.text);
  }
}

std::string Text(v1::DataType type, uint64_t bits) {
  return ElementText(type, ArrayBytes({type, {1}, {bits}, ""}).data());
}

TEST(ElementText, HasTheFewestDigitsThatGiveTheElementBack) {
  EXPECT_EQ(Text(v1::DATA_TYPE_FLOAT32, 0x3DCCCCCD), "0.1");
  EXPECT_EQ(Text(v1::DATA_TYPE_FLOAT32, 0x4B800000), "16777216.0");
  EXPECT_EQ(Text(v1::DATA_TYPE_FLOAT32, 0x80000000), "-0.0");
  EXPECT_EQ(Text(v1::DATA_TYPE_FLOAT32, 0x7F7FFFFF), "3.4028235e+38");
  EXPECT_EQ(Text(v1::DATA_TYPE_FLOAT32, 1), "1e-45");
  EXPECT_EQ(Text(v1::DATA_TYPE_FLOAT32, 0x7F800000), "inf");
  EXPECT_EQ(Text(v1::DATA_TYPE_FLOAT32, 0xFF800000), "-inf");
  EXPECT_EQ(Text(v1::DATA_TYPE_FLOAT32, 0xFFC00000), "nan");
  EXPECT_EQ(Text(v1::DATA_TYPE_FLOAT16, 0x2E66), "0.1");
  EXPECT_EQ(Text(v1::DATA_TYPE_FLOAT16, 1), "6e-08");
  EXPECT_EQ(Text(v1::DATA_TYPE_INT8, 0x80), "-128");
  EXPECT_EQ(Text(v1::DATA_TYPE_UINT64, ~uint64_t{0}), "18446744073709551615");
}

TEST(ElementText, GivesEveryHalfBack) {
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const std::string text = Text(v1::DATA_TYPE_FLOAT16, bits);
    const double read = std::stod(text);
    const double value = HalfToFloat(static_cast<uint16_t>(bits));
    const double below = bits == 0 ? -value : HalfToFloat(static_cast<uint16_t>(bits - 1));
    const double above = bits == 0x7BFF ? 65536 : HalfToFloat(static_cast<uint16_t>(bits + 1));
    ASSERT_GE(read, (below + value) / 2) << text;
    ASSERT_LE(read, (above + value) / 2) << text;
  }
}

}  // namespace
}  // namespace opmill
