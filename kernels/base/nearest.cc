#include "kernels/base/nearest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace opmill {
namespace {

constexpr size_t kMostBytes = 64;  // of a word; names have up to 40

// Damerau-Levenshtein distance: substitutions, deletions, insertions and transpositions. Both words
// have at most kMostBytes.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  using Row = std::array<size_t, kMostBytes + 1>;  // to each prefix of b
  Row before_last = {}, last = {}, row = {};       // from three prefixes of a
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Nearest(absl::string_view word, const std::vector<std::string>& candidates) {
  std::string nearest;
  if (word.size() > kMostBytes) return nearest;
  size_t least = std::numeric_limits<size_t>::max();
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMostBytes) continue;
    // gpu is no misspelling of cpu.
    if (candidate.size() <= 3 && !absl::StartsWith(word, candidate.substr(0, 1))) continue;
    const size_t distance = EditDistance(word, candidate);
    // A word that differs in more than a third of its letters is a different word.
    if (distance < least && distance <= std::max<size_t>(1, candidate.size() / 3)) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates,
                       absl::string_view prefix) {
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? "" : absl::StrCat(" Did you mean ", prefix, nearest, "?");
}

}  // namespace opmill
