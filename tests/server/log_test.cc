#include "server/observe/log.h"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// The output of `write`.
template <typename Write>
std::string Logged(LogFormat format, LogLevel least, Write write) {
  ::testing::internal::CaptureStderr();
  StartLog(format, least);
  write();
  return ::testing::internal::GetCapturedStderr();
}

google::protobuf::Struct FromJson(const std::string& line) {
  google::protobuf::Struct object;
  const auto status = google::protobuf::util::JsonStringToMessage(line, &object);
  EXPECT_TRUE(status.ok()) << status << ": " << line;
  return object;
}

TEST(JsonLog, IsOneObjectALine) {
  const std::string text = Logged(LogFormat::kJson, LogLevel::kInfo, [] {
    LogLine(LogLevel::kInfo, "execute")
        .Add("operator", "top_k")
        .Add("bytes", uint64_t{1} << 40)
        .Add("queue", absl::Milliseconds(3) + absl::Nanoseconds(1999))
        .Add(absl::OkStatus());
    LogLine(LogLevel::kError, "refuse").Add(InvalidField("begin.operator", "It is bad."));
  });
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_EQ(lines.size(), 3u) << text;
  EXPECT_EQ(lines[2], "");
  auto fields = FromJson(lines[0]).fields();
  EXPECT_EQ(fields["event"].string_value(), "execute");
  EXPECT_EQ(fields["level"].string_value(), "info");
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime("%Y-%m-%dT%H:%M:%E6SZ", fields["time"].string_value(), &time, &error))
      << fields["time"].string_value() << ": " << error;
  EXPECT_EQ(fields["operator"].string_value(), "top_k");
  EXPECT_EQ(fields["bytes"].number_value(), 0x1p40);
  EXPECT_EQ(fields["queue_us"].number_value(), 3001);
  EXPECT_EQ(fields["code"].string_value(), "OK");
  EXPECT_EQ(fields.size(), 7u);
  fields = FromJson(lines[1]).fields();
  EXPECT_EQ(fields["level"].string_value(), "error");
  EXPECT_EQ(fields["code"].string_value(), "INVALID_ARGUMENT");
  EXPECT_EQ(fields["error"].string_value(), "It is bad.");
  EXPECT_EQ(fields["field"].string_value(), "begin.operator");
}

TEST(JsonLog, KeepsEveryCharacterOfAValue) {
  std::string value = "quotes \" and \\ and %v {} and \xC3\xA4\xF0\x9F\x98\x80 and \x7F\xC2\x9B";
  for (char c = 0; c < 0x20; ++c) value += c;
  const std::string text = Logged(LogFormat::kJson, LogLevel::kInfo, [&value] {
    LogLine(LogLevel::kInfo, "event \"with\" quotes").Add("value", value);
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  auto fields = FromJson(text).fields();
  EXPECT_EQ(fields["value"].string_value(), value);
  EXPECT_EQ(fields["event"].string_value(), "event \"with\" quotes");
}

TEST(JsonLog, ReplacesInvalidUtf8) {
  const struct {
    std::string value;
    std::string logged;
  } cases[] = {
      {"a\xFF"
       "b\x80",
       "a\uFFFD"
       "b\uFFFD"},
      {"cut \xE2\x82", "cut \uFFFD\uFFFD"},
      {"overlong \xC0\xAF \xE0\x80\xAF", "overlong \uFFFD\uFFFD \uFFFD\uFFFD\uFFFD"},
      {"surrogate \xED\xA0\x80", "surrogate \uFFFD\uFFFD\uFFFD"},
      {"beyond \xF4\x90\x80\x80", "beyond \uFFFD\uFFFD\uFFFD\uFFFD"},
      {"last \xF4\x8F\xBF\xBF \xED\x9F\xBF", "last \xF4\x8F\xBF\xBF \xED\x9F\xBF"},
  };
  for (const auto& [value, logged] : cases) {
    const std::string text = Logged(LogFormat::kJson, LogLevel::kInfo, [&value = value] {
      LogLine(LogLevel::kInfo, "event").Add("value", value);
    });
    EXPECT_EQ(FromJson(text).fields().at("value").string_value(), logged);
  }
}

TEST(TextLog, QuotesValuesThatAreNotWords) {
  const std::string text = Logged(LogFormat::kText, LogLevel::kInfo, [] {
    LogLine(LogLevel::kWarning, "execute")
        .Add("word", "FLOAT32[2,3]")
        .Add("empty", "")
        .Add("words", "two words")
        .Add("pair", "a=b")
        .Add("lines", "a\nb")
        .Add("bytes", uint64_t{7});
  });
  EXPECT_THAT(text, EndsWith(" warning execute word=FLOAT32[2,3] empty=\"\" words=\"two words\" "
                             "pair=\"a=b\" lines=\"a\\u000ab\" bytes=7\n"));
}

TEST(TextLog, EscapesWhatCouldChangeATerminal) {
  const std::string text = Logged(LogFormat::kText, LogLevel::kInfo, [] {
    LogLine(LogLevel::kWarning, "model")
        .Add("file", "models/\x1B[2J")
        .Add("name", "x\xFF")
        .Add("other", "\xC3\xA4")
        .Add("c1",
             "\xC2\x9B"
             "2J");
  });
  EXPECT_THAT(text, EndsWith(" file=\"models/\\u001b[2J\" name=\"x\xEF\xBF\xBD\" other=\xC3\xA4 "
                             "c1=\"\\u009b2J\"\n"));
}

TEST(Log, OmitsLinesBelowItsLevel) {
  const std::string text = Logged(LogFormat::kText, LogLevel::kWarning, [] {
    LogLine(LogLevel::kDebug, "no").Add("key", "value");
    LogLine(LogLevel::kInfo, "no").Add(absl::InternalError("No."));
    LogLine(LogLevel::kWarning, "first").Add("key", "value");
    LogLine(LogLevel::kError, "second").Add("key", "value");
  });
  EXPECT_THAT(
      text, AllOf(HasSubstr(" warning first key=value\n"), HasSubstr(" error second key=value\n")));
  EXPECT_FALSE(absl::StrContains(text, "no"));
}

TEST(Log, DoesNotMixTheLinesOfManyThreads) {
  const std::string text = Logged(LogFormat::kJson, LogLevel::kInfo, [] {
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 4; ++i) {
      threads.emplace_back([i] {
        for (uint64_t j = 0; j < 500; ++j) {
          LogLine(LogLevel::kInfo, "event").Add("thread", i).Add("text", std::string(j % 90, 'x'));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  EXPECT_EQ(lines.size(), 2000u);
  for (const std::string& line : lines) FromJson(line);
}

}  // namespace
}  // namespace opmill
