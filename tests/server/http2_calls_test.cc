#include "server/network/http2_calls.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

using Event = Http2Calls::Event;

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr int kData = 0, kHeaders = 1, kRstStream = 3, kSettings = 4, kContinuation = 9;
constexpr int kEndHeaders = 4;
constexpr uint32_t kSmall = 100, kLarge = 1000;

std::string Frame(int type, int flags, uint32_t stream, absl::string_view payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += static_cast<char>(payload.size() >> shift);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift);
  return absl::StrCat(frame, payload);
}

std::string Field(absl::string_view name, absl::string_view value) {
  return absl::StrCat(std::string(1, '\0'), std::string(1, static_cast<char>(name.size())), name,
                      std::string(1, static_cast<char>(value.size())), value);
}

std::string Message(size_t size) {
  std::string message(5 + size, '\0');
  message[3] = static_cast<char>(size >> 8);
  message[4] = static_cast<char>(size);
  return message;
}

// The events, each with its stream and bytes.
using Events = std::vector<std::tuple<Event, uint32_t, uint64_t>>;

// Reads the bytes in pieces of `piece`.
Events ReadAll(absl::string_view bytes, size_t piece) {
  Http2Calls calls([](absl::string_view path) { return path == "/large" ? kLarge : kSmall; });
  Events events;
  while (!bytes.empty()) {
    const absl::string_view next = bytes.substr(0, piece);
    const Http2Calls::Step step =
        calls.Read({reinterpret_cast<const uint8_t*>(next.data()), next.size()});
    if (step.event == Event::kMetadata && !events.empty() &&
        std::get<0>(events.back()) == Event::kMetadata) {
      std::get<2>(events.back()) += step.bytes;
    } else if (step.event != Event::kNone) {
      events.emplace_back(step.event, step.stream, step.bytes);
    }
    if (step.event == Event::kInvalid || step.event == Event::kTooMuchMetadata) break;
    bytes.remove_prefix(step.consumed);
  }
  return events;
}

std::string HeadersOf(uint32_t stream, absl::string_view path) {
  return Frame(kHeaders, kEndHeaders, stream, Field(":path", path));
}

std::string Begin() { return absl::StrCat(kPreface, Frame(kSettings, 0, 0, "")); }

TEST(Http2Calls, ReportsCallsInPiecesOfEverySize) {
  const std::string bytes = absl::StrCat(
      Begin(), HeadersOf(1, "/large"), Frame(kData, 0, 1, Message(kLarge)), HeadersOf(3, "/small"),
      Frame(kData, 0, 3, Message(kSmall)), Frame(kData, 0, 3, Message(kSmall + 1).substr(0, 4)),
      Frame(kData, 0, 3, Message(kSmall + 1).substr(4)), Frame(kRstStream, 0, 3, "code"),
      Frame(kRstStream, 0, 5, "code"));
  const Events expected = {{Event::kCall, 1, 0},
                           {Event::kMetadata, 1, 5 + 6 + 192},
                           {Event::kCall, 3, 0},
                           {Event::kMetadata, 3, 5 + 6 + 192},
                           {Event::kLongMessage, 3, kSmall + 1},
                           {Event::kReset, 3, 0}};
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    EXPECT_EQ(ReadAll(bytes, piece), expected) << "in pieces of " << piece;
  }
}

TEST(Http2Calls, AMethodWithTwoPathsHasTheSmallerLimit) {
  for (const auto& [first, second] : {std::pair("/large", "/x"), std::pair("/x", "/large")}) {
    const std::string fields = absl::StrCat(Field(":path", first), Field(":path", second));
    const Events events = ReadAll(absl::StrCat(Begin(), Frame(kHeaders, kEndHeaders, 1, fields),
                                               Frame(kData, 0, 1, Message(kSmall + 1))),
                                  1000);
    EXPECT_EQ(std::get<0>(events.back()), Event::kLongMessage);
  }
}

TEST(Http2Calls, AMethodWithoutAPathHasTheSmallerLimit) {
  const Events events = ReadAll(absl::StrCat(Begin(), Frame(kHeaders, kEndHeaders, 1, ""),
                                             Frame(kData, 0, 1, Message(kSmall + 1))),
                                1000);
  EXPECT_EQ(std::get<0>(events.back()), Event::kLongMessage);
}

TEST(Http2Calls, MetadataOfManyFramesCountTogether) {
  std::string bytes = absl::StrCat(Begin(), Frame(kHeaders, 0, 1, Field("a", "b")));
  for (int i = 0; i < 3000; ++i) {
    absl::StrAppend(&bytes, Frame(kContinuation, 0, 1, Field("a", "b")));
  }
  const Events events = ReadAll(bytes, 1 << 20);
  EXPECT_EQ(std::get<0>(events.back()), Event::kTooMuchMetadata);
  EXPECT_EQ(std::get<2>(events[1]), (64 << 10) / 34 * (2 + 192));
}

TEST(Http2Calls, ReportsInvalidHeaderBlocks) {
  const std::string invalid[] = {Frame(kHeaders, kEndHeaders, 1, "\xff\xff\xff\xff\xff\xff"),
                                 Frame(kHeaders, kEndHeaders, 1, "\x40\x05x"),
                                 Frame(kContinuation, kEndHeaders, 1, ""),
                                 Frame(kHeaders, 0, 1, "") + Frame(kData, 0, 1, "")};
  for (const std::string& frames : invalid) {
    EXPECT_EQ(std::get<0>(ReadAll(Begin() + frames, 1000).back()), Event::kInvalid);
  }
}

TEST(Http2Calls, EveryStreamBeginsOneCall) {
  const std::string bytes =
      absl::StrCat(Begin(), HeadersOf(3, "/x"), HeadersOf(3, "/x"), HeadersOf(1, "/x"),
                   HeadersOf(4, "/x"), HeadersOf(7, "/x"));
  std::vector<uint32_t> begun;
  for (const auto& [event, stream, size] : ReadAll(bytes, 1000)) {
    if (event == Event::kCall) begun.push_back(stream);
  }
  EXPECT_EQ(begun, (std::vector<uint32_t>{3, 7}));
}

}  // namespace
}  // namespace opmill
