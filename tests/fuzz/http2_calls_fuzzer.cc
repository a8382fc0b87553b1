// What a peer sends on one HTTP/2 connection. The same calls must be found however the network cuts
// the bytes into pieces. The input begins with the sizes of the pieces: their number, then one byte
// each.
#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/network/http2_calls.h"
#include "tests/fuzz/check.h"

namespace opmill {
namespace {

using Event = Http2Calls::Event;
using Bytes = absl::Span<const uint8_t>;

constexpr uint32_t kSmall = 100, kLarge = 4000;

struct Seen {
  Event event;
  uint32_t stream;
  uint64_t bytes;
  size_t position;  // where the event ends
  bool operator==(const Seen&) const = default;
};

bool IsEnd(Event event) { return event == Event::kTooMuchMetadata || event == Event::kInvalid; }

uint32_t LimitOf(absl::string_view path) {
  FUZZ_CHECK(path.size() <= Http2Calls::kMostMetadataBytes, path.size());
  return absl::EndsWith(path, "Execute") ? kLarge : kSmall;
}

// Reads the connection in pieces of these sizes, again and again. Metadata of one call that no
// other event separates become one event, without a position.
std::vector<Seen> ReadAll(Bytes connection, Bytes sizes) {
  Http2Calls calls(LimitOf);
  std::vector<Seen> events;
  size_t position = 0;
  for (size_t piece = 0; position < connection.size(); ++piece) {
    const size_t size =
        sizes.empty() ? connection.size() : std::max<size_t>(sizes[piece % sizes.size()], 1);
    for (Bytes left = connection.subspan(position, size); !left.empty();) {
      const Http2Calls::Step step = calls.Read(left);
      FUZZ_CHECK(step.consumed <= left.size(), step.consumed, " of ", left.size());
      FUZZ_CHECK(step.consumed > 0 || IsEnd(step.event), "no progress at ", position);
      FUZZ_CHECK(step.event != Event::kNone || step.consumed == left.size(), step.consumed);
      position += step.consumed;
      left.remove_prefix(step.consumed);
      if (IsEnd(step.event)) {
        // How much of the last block came before depends on the pieces.
        while (!events.empty() && events.back().event == Event::kMetadata) events.pop_back();
        events.push_back({step.event, step.stream, 0, 0});
        return events;
      }
      if (step.event == Event::kReset) calls.Forget(step.stream);
      if (step.event == Event::kLongMessage) {
        FUZZ_CHECK(step.bytes > step.limit && (step.limit == kSmall || step.limit == kLarge),
                   step.bytes, " beyond ", step.limit);
      }
      if (step.event == Event::kMetadata) {
        const bool goes_on = !events.empty() && events.back().event == Event::kMetadata &&
                             events.back().stream == step.stream;
        if (!goes_on) events.push_back({Event::kMetadata, step.stream, 0, 0});
        events.back().bytes += step.bytes;
      } else if (step.event != Event::kNone) {
        events.push_back({step.event, step.stream, step.bytes, position});
      }
    }
  }
  return events;
}

void Run(Bytes input) {
  if (input.empty()) return;
  const Bytes sizes = input.subspan(1, input[0]);
  const Bytes connection = input.subspan(1 + sizes.size());
  const std::vector<Seen> whole = ReadAll(connection, {});
  FUZZ_CHECK(ReadAll(connection, sizes) == whole, whole.size(), " events at once");
  const uint8_t one = 1;
  FUZZ_CHECK(ReadAll(connection, {&one, 1}) == whole, whole.size(), " events at once");
  // Every stream begins at most one call, and all other events belong to calls that have begun.
  uint32_t last = 0;
  for (const Seen& seen : whole) {
    if (seen.event == Event::kCall) {
      FUZZ_CHECK(seen.stream > last && seen.stream % 2 == 1, seen.stream, " after ", last);
      last = seen.stream;
    } else if (!IsEnd(seen.event)) {
      FUZZ_CHECK(seen.stream <= last && seen.stream % 2 == 1, seen.stream, " after ", last);
    }
  }
}

}  // namespace
}  // namespace opmill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  opmill::Run({data, size});
  return 0;
}
