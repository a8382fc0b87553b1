#include "server/config/byte_size.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/quantities.h"

namespace opmill {
namespace {

using ::testing::EndsWith;

TEST(ByteSize, ParsesWithAndWithoutUnits) {
  const struct {
    const char* text;
    uint64_t bytes;
  } cases[] = {{"0", 0},
               {"1048576", kMebibyte},
               {"18446744073709551615", ~uint64_t{0}},
               {"7B", 7},
               {"1KiB", 1024},
               {"64MiB", 64 * kMebibyte},
               {"64mib", 64 * kMebibyte},
               {"64 MiB", 64 * kMebibyte},
               {"4GiB", 4 * kGibibyte},
               {"2TiB", 2048 * kGibibyte},
               {"16777215TiB", uint64_t{16777215} << 40},
               {"1kB", 1000},
               {"1KB", 1000},
               {"500MB", 500'000'000},
               {"3GB", 3'000'000'000},
               {"2TB", 2'000'000'000'000},
               {"1.5GiB", 3 * kGibibyte / 2},
               {"0.25MiB", kMebibyte / 4},
               {"1.0000000001KiB", 1024},
               {"0.1GiB", 107'374'182}};
  for (const auto& [text, bytes] : cases) {
    ByteSize size;
    std::string error;
    EXPECT_TRUE(AbslParseFlag(text, &size, &error)) << text << ": " << error;
    EXPECT_EQ(size.bytes, bytes) << text;
  }
}

TEST(ByteSize, RefusesInvalidAndTooLargeSizes) {
  for (const char* text : {"", "MiB", "-1", "+1", "1XB", "1.", ".5GiB", "1..5GiB", "1.5.2GiB",
                           "1,5GiB", "1e9", "0x10", "1 000", "1MiB ", " 1MiB", "inf"}) {
    ByteSize size = {7};
    std::string error;
    EXPECT_FALSE(AbslParseFlag(text, &size, &error)) << text;
    EXPECT_EQ(error,
              "A size is a number of bytes, or a number with KiB, MiB, GiB, TiB, kB, MB, GB or TB: "
              "64MiB, 1.5GiB.");
    EXPECT_EQ(size.bytes, 7u);
  }
  for (const auto& [text, meant] : {std::pair("1Gi", "1GiB"), std::pair("1.5m", "1.5MiB"),
                                    std::pair("2T", "2TiB"), std::pair("3k", "3KiB")}) {
    ByteSize size;
    std::string error;
    EXPECT_FALSE(AbslParseFlag(text, &size, &error)) << text;
    EXPECT_THAT(error, EndsWith(absl::StrCat("1.5GiB. Did you mean ", meant, "?")));
  }
  for (const char* text : {"18446744073709551616", "16777216TiB", "99999999999999999999B"}) {
    ByteSize size;
    std::string error;
    EXPECT_FALSE(AbslParseFlag(text, &size, &error)) << text;
    EXPECT_EQ(error, "The largest size is 18446744073709551615 bytes.");
  }
}

TEST(ByteSize, FormatsExactlyAndParsesItsOutput) {
  const std::pair<uint64_t, const char*> cases[] = {{0, "0"},
                                                    {1, "1"},
                                                    {1023, "1023"},
                                                    {4096, "4KiB"},
                                                    {64 * kMebibyte, "64MiB"},
                                                    {kGibibyte + 1, "1073741825"},
                                                    {3 * kGibibyte / 2, "1536MiB"},
                                                    {500'000'000, "500MB"},
                                                    {2048 * kGibibyte, "2TiB"},
                                                    {~uint64_t{0}, "18446744073709551615"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(AbslUnparseFlag({bytes}), text);
    ByteSize size;
    std::string error;
    EXPECT_TRUE(AbslParseFlag(text, &size, &error)) << error;
    EXPECT_EQ(size.bytes, bytes);
  }
}

TEST(ByteSize, FormatsManyDigitsWithARoundedSize) {
  EXPECT_EQ(FormatBytes(64 * kMebibyte), "64MiB");
  EXPECT_EQ(FormatBytes(4095), "4095");
  EXPECT_EQ(FormatBytes(kGibibyte + 1), "1073741825 (1.0GiB)");
  EXPECT_EQ(FormatBytes(323'909'316), "323909316 (308.9MiB)");
  EXPECT_EQ(FormatBytes(uint64_t{1} << 63), "9223372036854775808 (8388608.0TiB)");
}

}  // namespace
}  // namespace opmill
