// Bearer tokens and the names of those who hold them.
#ifndef OPMILL_SERVER_ACCESS_ACCESS_TOKENS_H_
#define OPMILL_SERVER_ACCESS_ACCESS_TOKENS_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace opmill {

// A constant set. It keeps the tokens' hashes and not the tokens.
class AccessTokens {
 public:
  static constexpr size_t kMinTokenLength = 16;

  // "name token" a line; empty lines, and those that begin with #, say nothing. Several tokens may
  // have one name, as while one is being replaced. FailedPrecondition, with the number of the line
  // and never its token.
  static absl::StatusOr<AccessTokens> Parse(absl::string_view text);

  // Of who holds it. Takes as long whichever of the tokens it is, or none.
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
