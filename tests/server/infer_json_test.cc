#include "server/http/infer_json.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

struct Decoded {
  absl::Status status;
  std::string message;
};

Decoded Decode(const std::string& json, TakeLists take_lists) {
  HttpBody body;
  body.Append(json);
  ResultForm form;
  const absl::StatusOr<grpc::ByteBuffer> message =
      DecodeInfer("model", "1", body, json.size(), form, take_lists);
  if (!message.ok()) return {message.status(), ""};
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(message->Dump(&slices).ok());
  Decoded decoded;
  for (const grpc::Slice& slice : slices) decoded.message.append(slice.begin(), slice.end());
  return decoded;
}

// Whether lists are read by themselves makes no difference. Returns whether the request is
// accepted.
bool Accepts(const std::string& json) {
  const Decoded lists = Decode(json, TakeLists::kYes);
  const Decoded plain = Decode(json, TakeLists::kNo);
  EXPECT_EQ(lists.status, plain.status) << json;
  EXPECT_EQ(lists.message, plain.message) << json;
  return plain.status.ok();
}

std::string Request(absl::string_view datatype, absl::string_view shape, absl::string_view data) {
  return absl::StrCat(R"({"inputs":[{"name":"x","datatype":")", datatype, R"(","shape":)", shape,
                      R"(,"data":)", data, "}]}");
}

constexpr absl::string_view kTypes[] = {"FP32", "FP16",  "INT64",  "INT32",  "INT16", "INT8",
                                        "BOOL", "UINT8", "UINT16", "UINT32", "UINT64"};

TEST(LongLists, HaveTheNumbersOfOthers) {
  int accepted = 0;
  for (const std::string number :
       {"0", "-0", "0.0", "-0.0", "1", "-1", "127", "128", "-128", "-129", "255", "256", "32768",
        "65504", "65520", "65536", "2147483647", "2147483648", "-2147483649", "4294967295",
        "4294967296", "9007199254740993", "9223372036854775807", "9223372036854775808",
        "-9223372036854775808", "-9223372036854775809", "9999999999999999999",
        "10000000000000000000", "18446744073709551615", "18446744073709551616", "0.1",
        "0.30000000000000004", "1.1754944e-38", "1e-45", "1e-46", "4.9e-324", "1e-400",
        "3.4028235e38", "3.4028236e38", "1e39", "1e308", "1e309", "1e22", "1e23", "1e-22", "1e-23",
        "1E5", "1e+5", "1e05", "12345678.87654321", "0.000000000000000000000001",
        "123456789012345678901234567890.5", "1e00005", "1e99999", "0.00000005960464477539063",
        "0.1234567", "0.12345678", "0.123456789", "1.0", "2.5e1",
        // Not JSON's.
        "01", "-01", "+1", ".5", "1.", "1.e5", "1e", "1e+", "-", "--1", "0x1", "1_0", "nan", "1 2",
        "1/", "1:", "", "null", "true", "\"1\"", "{}", "[]", "[1]"}) {
    for (const absl::string_view type : kTypes) {
      // Longer than what is left in the text, and with blanks.
      const std::string list =
          absl::StrCat("[", absl::StrJoin(std::vector<std::string>(70, number), ",\n "), " ]");
      accepted += Accepts(Request(type, "[70]", list)) ? 1 : 0;
      // Alone among good ones, at the end and at the beginning.
      const std::string ones = absl::StrJoin(std::vector<std::string>(69, "1"), ",");
      accepted += Accepts(Request(type, "[70]", absl::StrCat("[", ones, ",", number, "]"))) ? 1 : 0;
      accepted += Accepts(Request(type, "[70]", absl::StrCat("[", number, ",", ones, "]"))) ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, 500);
}

TEST(LongLists, HaveTheShapeOfOthers) {
  const std::string row =
      absl::StrCat("[", absl::StrJoin(std::vector<std::string>(50, "1.5"), ","), "]");
  const std::string shorter =
      absl::StrCat("[", absl::StrJoin(std::vector<std::string>(49, "1.5"), ","), "]");
  const std::string rows = absl::StrCat("[", row, ",", row, "]");
  EXPECT_TRUE(Accepts(Request("FP32", "[2,50]", rows)));
  EXPECT_TRUE(Accepts(Request("FP32", "[1,2,50]", absl::StrCat("[", rows, "]"))));
  EXPECT_TRUE(Accepts(Request("FP32", "[50]", row)));
  EXPECT_TRUE(Accepts(Request("FP32", "[5,10]", row)));
  for (const auto& [shape, data] : std::vector<std::pair<std::string, std::string>>{
           {"[50,2]", rows},
           {"[100]", rows},
           {"[2,50]", absl::StrCat("[", row, ",", shorter, "]")},
           {"[99]", absl::StrCat("[", row, ",", shorter, "]")},
           {"[2,50]", absl::StrCat("[", row, ",1]")},
           {"[51]", absl::StrCat("[", row, ",1]")},
           {"[2,50]", absl::StrCat("[", row, row, "]")},
           {"[50]", absl::StrCat(row.substr(0, row.size() - 1), ",]")},
           {"[2,50]", absl::StrCat("[", row, ",", row.substr(0, row.size() - 1), ",]]")},
           {"[49]", row},
           {"[51]", row},
           {"[0]", row},
           {"[-1]", row},
           {row, row}}) {
    EXPECT_FALSE(Accepts(Request("FP32", shape, data))) << shape;
  }
}

TEST(LongLists, MayBeInPlacesWhereNoListBelongs) {
  const std::string row =
      absl::StrCat("[", absl::StrJoin(std::vector<std::string>(50, "1"), ","), "]");
  const std::string good = Request("FP32", "[50]", row);
  const std::string inside = good.substr(1, good.size() - 2);
  for (const std::string& json :
       {absl::StrCat("{\"parameters\":{\"a\":", row, "},", inside, "}"),
        absl::StrCat("{\"parameters\":{", row, ":1},", inside, "}"),
        absl::StrCat("{\"parameters\":", row, ",", inside, "}"),
        absl::StrCat("{\"id\":", row, ",", inside, "}"), absl::StrCat("{", row, ",", inside, "}"),
        absl::StrCat(row, good), absl::StrCat(good, row),
        absl::StrCat("{\"outputs\":", row, ",", inside, "}"), row,
        std::string("[1[1[1[1[1[1[1[1[1[1[1[1[1[1[1[1[1[1"), absl::StrCat("{\"x\":\"\\"),
        absl::StrCat("[", std::string(100, '1'))}) {
    EXPECT_FALSE(Accepts(json)) << json;
  }
  // Within a string, brackets mean nothing.
  EXPECT_TRUE(
      Accepts(absl::StrCat("{\"id\":\"\\\"[1,", std::string(80, ' '), "]\",", inside, "}")));
  EXPECT_FALSE(
      Accepts(Request("FP32", "[2]", absl::StrCat("[1, \"", std::string(80, ' '), "]\"]"))));
}

// The search for the ends of lists takes time in proportion to the text.
TEST(LongLists, ThatHaveNoEndTakeNoTime) {
  std::string json;
  for (int i = 0; i < 2'000'000; ++i) json += "[1";
  EXPECT_FALSE(Accepts(json));
}

}  // namespace
}  // namespace opmill
