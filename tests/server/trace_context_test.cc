#include "server/traces/trace_context.h"

#include <optional>
#include <set>
#include <string>

#include "gtest/gtest.h"

namespace opmill {
namespace {

constexpr char kGood[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(Traceparent, IsWhatTheRecommendationSays) {
  EXPECT_TRUE(IsTraceparent(kGood));
  EXPECT_TRUE(IsTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"));
  EXPECT_TRUE(IsTraceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
  EXPECT_TRUE(IsTraceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later"));
}

TEST(Traceparent, NamesTraceAndSpan) {
  const std::optional<TraceContext> read = ReadTraceparent(kGood);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->trace_high, 0x4bf92f3577b34da6u);
  EXPECT_EQ(read->trace_low, 0xa3ce929d0e0e4736u);
  EXPECT_EQ(read->span, 0x00f067aa0ba902b7u);
  EXPECT_TRUE(read->is_sampled);
  EXPECT_EQ(TraceparentOf(*read), kGood);
  const auto is_sampled = [](const std::string& flags) {
    return ReadTraceparent(std::string(kGood).substr(0, 53) + flags)->is_sampled;
  };
  EXPECT_FALSE(is_sampled("00"));
  EXPECT_FALSE(is_sampled("02"));  // a flag of level 2, whose meaning does not matter here
  EXPECT_TRUE(is_sampled("03"));
  EXPECT_TRUE(is_sampled("ff"));
  EXPECT_EQ(TraceparentOf({.trace_high = 0, .trace_low = 1, .span = 2}),
            "00-00000000000000000000000000000001-0000000000000002-00");
}

TEST(Traceparent, NewIdsDiffer) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    TraceContext trace = NewTrace();
    EXPECT_EQ(trace.span, 0u);
    trace.span = NewSpanId();
    const std::string text = TraceparentOf(trace);
    EXPECT_TRUE(IsTraceparent(text)) << text;
    ids.insert(text);
  }
  EXPECT_EQ(ids.size(), 1000u);
}

TEST(Traceparent, ChanceHasItsProbability) {
  int happened = 0;
  for (int i = 0; i < 10000; ++i) {
    EXPECT_FALSE(Happens(0));
    EXPECT_TRUE(Happens(1));
    happened += Happens(0.25) ? 1 : 0;
  }
  EXPECT_NEAR(happened, 2500, 300);  // seven standard deviations
}

TEST(Traceparent, IsNothingElse) {
  for (const char* bad : {"", "00", "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                          "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                          "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                          "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                          "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                          "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
                          "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                          "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
                          "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-a b",
                          "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                          "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
                          "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01"}) {
    EXPECT_FALSE(IsTraceparent(bad)) << bad;
  }
  // Every shorter one, and one that is too long.
  const std::string good = kGood;
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(IsTraceparent(good.substr(0, length))) << length;
  }
  EXPECT_FALSE(IsTraceparent("cc" + good.substr(2) + "-" + std::string(300, 'x')));
}

}  // namespace
}  // namespace opmill
