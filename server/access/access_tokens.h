// Bearer tokens and the names of their holders.
#ifndef OPMILL_SERVER_ACCESS_ACCESS_TOKENS_H_
#define OPMILL_SERVER_ACCESS_ACCESS_TOKENS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace opmill {

// An immutable set of tokens. Stores their hashes only. Thread-safe.
class AccessTokens {
 public:
  static constexpr size_t kMinTokenLength = 16;

  // Each line is "name token"; empty lines and lines that begin with # are ignored. Several tokens
  // may have the same name, for example during a rotation. Returns FailedPrecondition with the
  // number of the line, but not the token.
  static absl::StatusOr<AccessTokens> Parse(absl::string_view text);

  // The name of the token's holder. Takes the same time for every token, known or not.
  std::optional<std::string> NameOf(absl::string_view token) const;

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string hash;  // SHA-256
    std::string name;
  };
  std::vector<Entry> entries_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_ACCESS_ACCESS_TOKENS_H_
