#include "server/observe/recent_errors.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"

namespace opmill {
namespace {

constexpr size_t kDigitsOfASecret = 32;  // 16 bytes

}  // namespace

std::string ShortenedSentence(absl::string_view text, size_t max_bytes) {
  std::string shortened;
  size_t next = 0;  // the first byte that is not appended yet
  for (size_t at = 0; at < text.size() && shortened.size() + at - next <= max_bytes; ++at) {
    const size_t start = at;
    while (at < text.size() && absl::ascii_isxdigit(static_cast<unsigned char>(text[at]))) ++at;
    if (at - start < kDigitsOfASecret) continue;
    absl::StrAppend(&shortened, text.substr(next, start - next + RecentErrors::kMostDigits), "...");
    next = at;
  }
  absl::StrAppend(&shortened, text.substr(next, max_bytes + 1));
  const absl::string_view part = BeginningOf(shortened, max_bytes);
  return absl::StrCat(part, part.size() < shortened.size() ? "..." : "");
}

void RecentErrors::Add(absl::string_view rpc, const absl::Status& why) {
  if (why.ok() || absl::IsCancelled(why)) return;
  std::list<RecentError> added;  // allocated, and what it displaces freed, without the lock
  added.push_back({.rpc = std::string(rpc),
                   .code = why.code(),
                   .field = ShortenedSentence(FieldOf(why).value_or(""), kMostFieldBytes),
                   .sentence = ShortenedSentence(why.message(), kMostSentenceBytes),
                   .count = 1,
                   .last = absl::Now()});
  const RecentError& error = added.front();
  const absl::MutexLock lock(&mutex_);
  const auto same = std::find_if(errors_.begin(), errors_.end(), [&](const RecentError& each) {
    return each.code == error.code && each.sentence == error.sentence && each.rpc == error.rpc &&
           each.field == error.field;
  });
  if (same != errors_.end()) {
    ++same->count;
    same->last = error.last;
    errors_.splice(errors_.begin(), errors_, same);
    return;
  }
  errors_.splice(errors_.begin(), added);
  if (errors_.size() > kMost) added.splice(added.begin(), errors_, std::prev(errors_.end()));
}

std::vector<RecentError> RecentErrors::All() const {
  const absl::MutexLock lock(&mutex_);
  return {errors_.begin(), errors_.end()};
}

}  // namespace opmill
