#include "server/access/access_tokens.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/base/sha256.h"
#include "openssl/crypto.h"

namespace opmill {
namespace {

// A superset of the characters of RFC 6750, without those that separate name and token.
bool IsTokenCharacter(char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)) != 0; }

}  // namespace

absl::StatusOr<AccessTokens> AccessTokens::Parse(absl::string_view text) {
  AccessTokens tokens;
  size_t number = 0;
  for (const absl::string_view raw : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty() || line[0] == '#') continue;
    const auto bad = [number](absl::string_view what) {
      return absl::FailedPreconditionError(absl::StrCat("line ", number, " ", what));
    };
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() != 2) {
      return bad(absl::StrCat("has ", words.size(), words.size() == 1 ? " word" : " words",
                              "; it must have a name and a token."));
    }
    const absl::string_view token = words[1];
    if (token.size() < kMinTokenLength) {
      return bad(absl::StrCat("has a token of ", token.size(), " characters; the least is ",
                              kMinTokenLength, "."));
    }
    if (!std::all_of(token.begin(), token.end(), &IsTokenCharacter)) {
      return bad("has a token with characters that are not printable ASCII.");
    }
    const std::string hash = Sha256(token);
    for (const Entry& entry : tokens.entries_) {
      if (entry.hash == hash) return bad("repeats the token of an earlier line.");
    }
    tokens.entries_.push_back({hash, std::string(words[0])});
  }
  if (tokens.entries_.empty()) return absl::FailedPreconditionError("it holds no token");
  return tokens;
}

std::optional<std::string> AccessTokens::NameOf(absl::string_view token) const {
  const std::string hash = Sha256(token);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (CRYPTO_memcmp(hash.data(), entry.hash.data(), hash.size()) == 0) found = &entry;
  }
  if (found == nullptr) return std::nullopt;
  return found->name;
}

}  // namespace opmill
