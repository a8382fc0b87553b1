#include "client/connect_failure.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace opmill {
namespace {

struct Meaning {
  bool speaks_tls;          // this client
  absl::string_view words;  // of gRPC and OpenSSL, in any case; BoringSSL uses _ for spaces
  absl::string_view sentence;
};

constexpr Meaning kMeanings[] = {
    {false, "socket closed", "closes clear-text connections at once: it probably accepts only TLS"},
    {false, "connection reset",
     "closes clear-text connections at once: it probably accepts only TLS"},
    {false, "http1.x server", "speaks HTTP/1, not gRPC"},
    {true, "http1.x server", "speaks HTTP/1, not gRPC"},
    {true, "wrong version number", "uses clear text, not TLS"},
    {true, "certificate verify failed",
     "has a certificate that was not accepted: it has expired, or no trusted authority has signed "
     "it"},
    {true, "is not in peer certificate", "has a certificate for another name"},
    {true, "socket closed",
     "closes the connection after the handshake: it probably requires a client certificate that "
     "is valid and signed by an authority that it trusts"},
    {true, "connection reset",
     "closes the connection after the handshake: it probably requires a client certificate that "
     "is valid and signed by an authority that it trusts"},
    {true, "empty address list",
     "was not contacted: the certificates of this client cannot be used"},
};

// The text after the last `mark`, or all of the text.
absl::string_view After(absl::string_view text, absl::string_view mark) {
  const size_t at = text.rfind(mark);
  return at == text.npos ? text : text.substr(at + mark.size());
}

// "dns:///host:1" -> "host"
absl::string_view HostOf(absl::string_view target) {
  const absl::string_view address = After(target, "/");
  return address.substr(0, address.rfind(':'));
}

}  // namespace

std::string ConnectFailure(absl::string_view target, bool speaks_tls, absl::string_view error) {
  if (absl::StrContains(error, "DNS resolution failed")) {
    return absl::StrCat("The name ", HostOf(target), " cannot be resolved: ", After(error, ": "));
  }
  std::string plain = absl::AsciiStrToLower(error);
  for (char& c : plain) {
    if (c == '_') c = ' ';
  }
  for (const Meaning& meaning : kMeanings) {
    if (meaning.speaks_tls == speaks_tls && absl::StrContains(plain, meaning.words)) {
      return absl::StrCat("The server at ", target, " ", meaning.sentence, " (",
                          absl::StripSuffix(error, "."), ").");
    }
  }
  // "UNKNOWN: unix:/socket: No such file or directory"
  const absl::string_view reason = After(error, absl::StrCat(target, ": "));
  return absl::StrCat("No server answers at ", target, ": ",
                      After(reason, "Failed to connect to remote host: "));
}

}  // namespace opmill
