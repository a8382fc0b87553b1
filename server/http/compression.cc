#include "server/http/compression.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace opmill {
namespace {

constexpr absl::string_view kEncodings[] = {"gzip", "deflate"};
constexpr int kWindowBits = 15;
constexpr int kGzip = 16;        // added to the window bits
constexpr int kGzipOrZlib = 32;  // the same
constexpr int kMemoryLevel = 8;
constexpr size_t kMostExpansion = 1032;          // of deflate
constexpr size_t kMostAtOnce = size_t{1} << 30;  // zlib counts in 32 bits

// Whether the parameters of an encoding, such as ";q=0", forbid it.
bool IsForbidden(absl::string_view parameters) {
  const size_t quality = parameters.find("q=");
  double value = 1;
  return quality != parameters.npos && absl::SimpleAtod(parameters.substr(quality + 2), &value) &&
         value <= 0;
}

absl::Status NotCompressed() {
  return absl::InvalidArgumentError(
      "The body of the request is not complete data of its Content-Encoding.");
}

// Ends the stream.
struct Inflater {
  ~Inflater() { inflateEnd(&stream); }
  z_stream stream = {};
};

}  // namespace

bool IsSupportedEncoding(absl::string_view name) {
  return std::any_of(std::begin(kEncodings), std::end(kEncodings),
                     [&](absl::string_view each) { return absl::EqualsIgnoreCase(each, name); });
}

absl::string_view ChooseEncoding(absl::string_view accept_encoding) {
  for (const absl::string_view each : absl::StrSplit(accept_encoding, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(each, absl::MaxSplits(';', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(parts.first);
    for (const absl::string_view known : kEncodings) {
      if (absl::EqualsIgnoreCase(known, name) && !IsForbidden(parts.second)) return known;
    }
  }
  return "";
}

size_t MostInflated(size_t compressed_bytes, size_t max_bytes) {
  return std::min(compressed_bytes, max_bytes / kMostExpansion) * kMostExpansion +
         HttpBody::kBlockBytes;
}

absl::Status Inflate(const HttpBody& from, size_t max_bytes, HttpBody& to) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  if (inflateInit2(&stream, kWindowBits + kGzipOrZlib) != Z_OK) {
    return absl::ResourceExhaustedError("The server has no memory to decompress the request.");
  }
  int result = Z_OK;
  for (const grpc::Slice& block : from.Slices(0, from.size())) {
    stream.next_in = const_cast<uint8_t*>(block.begin());
    stream.avail_in = static_cast<uInt>(block.size());
    do {
      if (result == Z_STREAM_END) return NotCompressed();  // there are bytes after the end
      const absl::Span<char> room = to.Prepare(4 * from.size());
      stream.next_out = reinterpret_cast<uint8_t*>(room.data());
      stream.avail_out = static_cast<uInt>(room.size());
      result = inflate(&stream, Z_NO_FLUSH);
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) return NotCompressed();
      to.Commit(room.size() - stream.avail_out);
      if (to.size() > max_bytes) {
        return absl::OutOfRangeError(
            absl::StrCat("The decompressed body of the request has more than ", max_bytes,
                         " bytes (max_message_bytes)."));
      }
    } while (stream.avail_in > 0 || (stream.avail_out == 0 && result != Z_STREAM_END));
  }
  return result == Z_STREAM_END ? absl::OkStatus() : NotCompressed();
}

std::string Deflate(absl::string_view encoding, absl::Span<const absl::string_view> parts) {
  z_stream stream = {};
  // The fastest level: most bytes are tensors, which hardly become smaller.
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED,
                   kWindowBits + (encoding == "gzip" ? kGzip : 0), kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return "";
  }
  std::string compressed;
  std::array<char, 64 << 10> room;
  const auto write = [&](int flush) {
    do {
      stream.next_out = reinterpret_cast<uint8_t*>(room.data());
      stream.avail_out = static_cast<uInt>(room.size());
      deflate(&stream, flush);
      compressed.append(room.data(), room.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  for (absl::string_view part : parts) {
    while (!part.empty()) {
      const absl::string_view some = part.substr(0, kMostAtOnce);
      stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(some.data()));
      stream.avail_in = static_cast<uInt>(some.size());
      write(Z_NO_FLUSH);
      part.remove_prefix(some.size());
    }
  }
  write(Z_FINISH);
  deflateEnd(&stream);
  return compressed;
}

}  // namespace opmill
