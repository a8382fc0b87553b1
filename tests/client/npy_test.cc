#include "client/npy.h"

#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/bytes_of.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A file with this version, dictionary and number of element bytes.
std::string File(int major, const std::string& dictionary, size_t data_bytes) {
  std::string file =
      absl::StrCat("\x93NUMPY", std::string(1, static_cast<char>(major)), std::string(1, '\0'));
  const int length_bytes = major == 1 ? 2 : 4;
  for (int i = 0; i < length_bytes; ++i) {
    file.push_back(static_cast<char>((dictionary.size() >> (8 * i)) & 0xFF));
  }
  return file + dictionary + std::string(data_bytes, '\x01');
}

std::string Dictionary(const std::string& descr, const std::string& shape,
                       const std::string& order = "False") {
  return absl::StrCat("{'descr': ", descr, ", 'fortran_order': ", order, ", 'shape': ", shape,
                      ", }          \n");
}

absl::StatusOr<NpyHeader> ParseFile(const std::string& file) {
  return ParseNpyHeader(BytesOf(file));
}

TEST(ParseNpyHeader, ReadsEveryVersion) {
  for (const int major : {1, 2, 3}) {
    const std::string dictionary = Dictionary("'<f4'", "(3, 4)");
    const std::string file = File(major, dictionary, 48);
    const absl::StatusOr<NpyHeader> header = ParseFile(file);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(DataTypeOf(header->dtype), v1::DATA_TYPE_FLOAT32);
    EXPECT_THAT(header->sizes, ElementsAre(3, 4));
    EXPECT_FALSE(header->fortran_order);
    EXPECT_EQ(header->data_offset, file.size() - 48);
    EXPECT_EQ(header->data_bytes, 48u);
  }
}

TEST(ParseNpyHeader, ReadsEveryType) {
  const std::tuple<const char*, v1::DataType, size_t> types[] = {
      {"'<f4'", v1::DATA_TYPE_FLOAT32, 4}, {"'<f2'", v1::DATA_TYPE_FLOAT16, 2},
      {"'<i8'", v1::DATA_TYPE_INT64, 8},   {"'<i4'", v1::DATA_TYPE_INT32, 4},
      {"'<i2'", v1::DATA_TYPE_INT16, 2},   {"'|i1'", v1::DATA_TYPE_INT8, 1},
      {"'<u8'", v1::DATA_TYPE_UINT64, 8},  {"'<u4'", v1::DATA_TYPE_UINT32, 4},
      {"'<u2'", v1::DATA_TYPE_UINT16, 2},  {"'|u1'", v1::DATA_TYPE_UINT8, 1},
      {"'=f4'", v1::DATA_TYPE_FLOAT32, 4}, {"\"<f4\"", v1::DATA_TYPE_FLOAT32, 4},
      {"'>u1'", v1::DATA_TYPE_UINT8, 1}};
  for (const auto& [descr, type, bytes] : types) {
    const absl::StatusOr<NpyHeader> header =
        ParseFile(File(1, Dictionary(descr, "(5,)"), 5 * bytes));
    ASSERT_TRUE(header.ok()) << descr << header.status();
    EXPECT_EQ(DataTypeOf(header->dtype), type);
    EXPECT_EQ(header->data_bytes, 5 * bytes);
  }
}

TEST(ParseNpyHeader, TakesAnyOrderOfKeysAndPythonTwosLongIntegers) {
  const std::string dictionary = "{\"shape\":(2L,3L),'fortran_order':True,'descr':'<i4'}";
  const absl::StatusOr<NpyHeader> header = ParseFile(File(1, dictionary, 24));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_THAT(header->sizes, ElementsAre(2, 3));
  EXPECT_TRUE(header->fortran_order);
}

TEST(ParseNpyHeader, IgnoresBytesAfterTheArray) {
  const absl::StatusOr<NpyHeader> header = ParseFile(File(1, Dictionary("'<f4'", "(2,)"), 100));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->data_bytes, 8u);
}

TEST(ParseNpyHeader, LeavesEmptyArraysToTheServer) {
  const absl::StatusOr<NpyHeader> header =
      ParseFile(File(1, Dictionary("'<f4'", "(4294967295, 4294967295, 4294967295, 0)"), 0));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->data_bytes, 0u);
}

TEST(ParseNpyHeader, ReadsArraysWithoutDimensions) {
  const absl::StatusOr<NpyHeader> header = ParseFile(File(1, Dictionary("'<f4'", "()"), 4));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_TRUE(header->sizes.empty());
  EXPECT_EQ(header->data_bytes, 4u);
}

TEST(ParseNpyHeader, ReadsWhatCanBeCast) {
  struct Case {
    const char* descr;
    NpyDtype dtype;
    v1::DataType data_type;
  };
  const Case cases[] = {{"'<f8'", {'f', 8, false}, v1::DATA_TYPE_UNSPECIFIED},
                        {"'>f8'", {'f', 8, true}, v1::DATA_TYPE_UNSPECIFIED},
                        {"'|b1'", {'b', 1, false}, v1::DATA_TYPE_UNSPECIFIED},
                        {"'>i2'", {'i', 2, true}, v1::DATA_TYPE_UNSPECIFIED},
                        {"'>u1'", {'u', 1, false}, v1::DATA_TYPE_UINT8},
                        {"'<f2'", {'f', 2, false}, v1::DATA_TYPE_FLOAT16}};
  for (const Case& expected : cases) {
    const std::string file =
        File(1, Dictionary(expected.descr, "(5,)"), 5 * size_t{expected.dtype.bytes});
    const absl::StatusOr<NpyHeader> header = ParseNpyHeader(BytesOf(file), NpyDtypes::kCastable);
    ASSERT_TRUE(header.ok()) << expected.descr << header.status();
    EXPECT_EQ(header->dtype.kind, expected.dtype.kind) << expected.descr;
    EXPECT_EQ(header->dtype.bytes, expected.dtype.bytes) << expected.descr;
    EXPECT_EQ(header->dtype.is_big_endian, expected.dtype.is_big_endian) << expected.descr;
    EXPECT_EQ(DataTypeOf(header->dtype), expected.data_type) << expected.descr;
    EXPECT_EQ(header->data_bytes, 5u * expected.dtype.bytes);
  }
  for (const char* const descr : {"'<c8'", "'<f16'", "'|O'", "'<M8[ns]'", "'|f4'"}) {
    const std::string file = File(1, Dictionary(descr, "(1,)"), 16);
    EXPECT_FALSE(ParseNpyHeader(BytesOf(file), NpyDtypes::kCastable).ok()) << descr;
  }
}

TEST(NpyHeaderBytes, CountsByTheFirstBytesAlone) {
  for (const int major : {1, 2, 3}) {
    const std::string file = File(major, Dictionary("'<f4'", "(3, 4)"), 48);
    const absl::StatusOr<size_t> bytes = NpyHeaderBytes(BytesOf(file.substr(0, kNpyPrefixBytes)));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(*bytes, file.size() - 48);
    const absl::StatusOr<NpyHeader> header =
        ReadNpyHeader(BytesOf(file.substr(0, *bytes)), NpyDtypes::kOfOperators);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->data_offset, *bytes);
    EXPECT_TRUE(CheckNpyLength(*header, file.size()).ok());
    EXPECT_FALSE(CheckNpyLength(*header, file.size() - 1).ok());
  }
}

struct Refusal {
  std::string file;
  std::string sentence;
};

TEST(ParseNpyHeader, RefusesWithAReason) {
  const std::string good = File(1, Dictionary("'<f4'", "(3, 4)"), 48);
  std::string version_four = good;
  version_four[6] = '\4';
  std::string version_one_point_one = good;
  version_one_point_one[7] = '\1';
  const Refusal refusals[] = {
      {"", "not a .npy file"},
      {"PK\3\4 a .npz file, perhaps", "not a .npy file"},
      {good.substr(0, 5), "not a .npy file"},
      {good.substr(0, 7), "is truncated: it needs 8 bytes and has 7"},
      {good.substr(0, 9), "is truncated: it needs 10 bytes and has 9"},
      {good.substr(0, 40), "is truncated"},
      {good.substr(0, good.size() - 1), "is truncated"},
      {version_four, "format 4.0; only 1.0, 2.0 and 3.0"},
      {version_one_point_one, "format 1.1"},
      {File(1, Dictionary("'>f4'", "(3,)"), 12), "'>f4' is big-endian"},
      {File(1, Dictionary("'>i2'", "(3,)"), 12), "x.astype('<i2')"},
      {File(1, Dictionary("'<f8'", "(3,)"), 24), "'<f8' is not one of the types"},
      {File(1, Dictionary("'<f8'", "(3,)"), 24), "float32, float16, int64, int32"},
      {File(1, Dictionary("'|b1'", "(3,)"), 3), "'|b1' is not one of the types"},
      {File(1, Dictionary("'<c8'", "(3,)"), 24), "'<c8' is not one of the types"},
      {File(1, Dictionary("'|O'", "(3,)"), 24), "'|O' is not one of the types"},
      {File(1, Dictionary("'<U3'", "(3,)"), 24), "'<U3' is not one of the types"},
      {File(1, Dictionary("''", "(3,)"), 24), "'' is not one of the types"},
      {File(1, Dictionary("[('a', '<f4'), ('b', '<i4')]", "(3,)"), 24), "structured"},
      {File(1, Dictionary("'<f4'", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), 4), "more than 8 dimensions"},
      {File(1, Dictionary("'<f4'", "(4294967296,)"), 4), "dimension 0 has size 4294967296"},
      {File(1, Dictionary("'<f4'", "(99999999999999999999,)"), 4), "not a tuple of sizes"},
      {File(1, Dictionary("'<f4'", "(4294967295, 4294967295, 4294967295)"), 4),
       "more than 2^64 bytes"},
      {File(1, Dictionary("'<f4'", "(2147483648, 2147483648)"), 4), "more than 2^64 bytes"},
      {File(1, Dictionary("'<f4'", "(-3,)"), 12), "not a tuple of sizes"},
      {File(1, Dictionary("'<f4'", "(3 4)"), 48), "not a tuple of sizes"},
      {File(1, Dictionary("'<f4'", "3"), 12), "not a tuple"},
      {File(1, Dictionary("'<f4'", "(3,)", "Maybe"), 12), "neither True nor False"},
      {File(1, "{'descr': '<f4', 'shape': (3,)}", 12), "is missing"},
      {File(1, "{'descr': '<f4', 'descr': '<f4', 'shape': (3,)}", 12), "given twice"},
      {File(1, "{'descr': '<f4', 'colour': 'red'}", 12), "'colour' is unknown"},
      {File(1, Dictionary("'<f4'", "(3,)") + "x", 12), "more text after"},
      {File(1, "{'descr': '<f4", 12), "malformed"},
      {File(1, "", 12), "not a dictionary"},
      {File(1, Dictionary("'\33[2J'", "(3,)"), 12), "'\\033[2J' is not one of the types"},
      {File(1, "{'" + std::string(1000, 'x') + "': 1}", 12),
       "the key '" + std::string(40, 'x') + "...' is unknown"},
      {File(2, "[]", 12), "not a dictionary"},
      {absl::StrCat(absl::string_view("\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF", 12)),
       "header has 4294967295 bytes; the limit is 1048576"},
  };
  for (const Refusal& refusal : refusals) {
    const absl::StatusOr<NpyHeader> header = ParseFile(refusal.file);
    ASSERT_FALSE(header.ok()) << refusal.sentence;
    EXPECT_EQ(header.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(header.status().message()), HasSubstr(refusal.sentence));
  }
}

TEST(ParseNpyHeader, RefusesEveryTruncatedFile) {
  const std::string file = File(2, Dictionary("'<f4'", "(3, 4)"), 48);
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ParseFile(file.substr(0, size)).ok()) << size;
  }
}

TEST(MakeNpyHeader, IsReadBackAndAligned) {
  for (const v1::DataType type :
       {v1::DATA_TYPE_FLOAT16, v1::DATA_TYPE_UINT8, v1::DATA_TYPE_INT64}) {
    for (const std::vector<uint32_t>& sizes :
         {std::vector<uint32_t>{7}, {1, 2}, {2, 1, 2, 1, 2, 1, 2, 1}}) {
      const std::string header = MakeNpyHeader(type, sizes);
      EXPECT_EQ(header.size() % 64, 0u);
      EXPECT_EQ(header.back(), '\n');
      const absl::StatusOr<NpyHeader> read = ParseFile(header + std::string(1000, 'x'));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(DataTypeOf(read->dtype), type);
      EXPECT_EQ(read->sizes, sizes);
      EXPECT_EQ(read->data_offset, header.size());
    }
  }
}

TEST(MakeNpyHeader, IsWhatNumPyWrites) {
  // numpy.save of numpy.zeros((3, 4), 'int16'), version 1.24.
  EXPECT_EQ(MakeNpyHeader(v1::DATA_TYPE_INT16, std::vector<uint32_t>{3, 4}),
            absl::StrCat(absl::string_view("\x93NUMPY\x01\x00v\x00", 10),
                         "{'descr': '<i2', 'fortran_order': False, 'shape': (3, 4), }",
                         std::string(58, ' '), "\n"));
}

TEST(NpyHeader, GivesFortranOrderAsStrides) {
  NpyHeader header{.dtype = {'i', 1}, .sizes = {3, 4, 5}, .fortran_order = true};
  const absl::StatusOr<v1::TensorDesc> desc = ToTensorDesc(header);
  ASSERT_TRUE(desc.ok()) << desc.status();
  EXPECT_THAT(desc->strides(), ElementsAre(1, 3, 12));
  header.fortran_order = false;
  EXPECT_EQ(ToTensorDesc(header)->strides_size(), 0);
}

TEST(NpyHeader, RefusesStridesPastTheDescriptors) {
  const NpyHeader header{.dtype = {'i', 1}, .sizes = {65536, 65536, 2}, .fortran_order = true};
  EXPECT_THAT(std::string(ToTensorDesc(header).status().message()), HasSubstr("4294967296"));
}

}  // namespace
}  // namespace opmill
