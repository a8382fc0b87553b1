// Bearer tokens and the names of their holders.
#ifndef OPMILL_SERVER_ACCESS_ACCESS_TOKENS_H_
#define OPMILL_SERVER_ACCESS_ACCESS_TOKENS_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace opmill {

// An immutable set of tokens. It stores the hashes of the tokens, not the tokens.
class AccessTokens {
 public:
  static constexpr size_t kMinTokenLength = 16;

  // Parses one "name token" per line. Empty lines and lines that start with # are ignored. Several
  // tokens may have the same name, for example while one is being replaced. Returns
  // FailedPrecondition with the line number, but without the token, if a line is invalid.
  static absl::StatusOr<AccessTokens> Parse(absl::string_view text);

  // The name of the token's holder. The running time does not depend on which token matches, if
  // any.
  std::optional<std::string> NameOf(absl::string_view token) const;

  size_t size() const { return entries_.size(); }

 private:
  using Hash = std::array<unsigned char, 32>;  // SHA-256
  static Hash HashOf(absl::string_view token);

  struct Entry {
    Hash hash;
    std::string name;
  };
  std::vector<Entry> entries_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_ACCESS_ACCESS_TOKENS_H_
