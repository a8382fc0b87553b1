// gzip and deflate, as HTTP means them.
#ifndef OPMILL_SERVER_HTTP_COMPRESSION_H_
#define OPMILL_SERVER_HTTP_COMPRESSION_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/http/http_body.h"

namespace opmill {

// "gzip" and "deflate", whose bytes have zlib's header.
bool IsSupportedEncoding(absl::string_view name);

// The encoding for an answer to a request with this Accept-Encoding; empty: none.
absl::string_view ChooseEncoding(absl::string_view accept_encoding);

// What `compressed_bytes` expand to at most.
size_t MostInflated(size_t compressed_bytes, size_t max_bytes);

// Appends the bytes to `to`; OutOfRange if there are more than `max_bytes`.
absl::Status Inflate(const HttpBody& from, size_t max_bytes, HttpBody& to);

std::string Deflate(absl::string_view encoding, absl::Span<const absl::string_view> parts);

}  // namespace opmill

#endif  // OPMILL_SERVER_HTTP_COMPRESSION_H_
