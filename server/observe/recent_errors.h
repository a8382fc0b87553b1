// The last errors that callers got, for people who look at the server.
#ifndef OPMILL_SERVER_OBSERVE_RECENT_ERRORS_H_
#define OPMILL_SERVER_OBSERVE_RECENT_ERRORS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace opmill {

struct RecentError {
  std::string rpc;
  absl::StatusCode code = absl::StatusCode::kUnknown;
  std::string field;     // of the request; empty if the error names none
  std::string sentence;  // as the caller got it, but shortened
  uint64_t count = 0;    // of equal ones
  absl::Time last;       // the time of day of the latest of them
};

// Keeps kMost errors of at most about 600 bytes each. Equal ones are one entry, so that a caller
// that repeats a mistake does not hide those of others. Does not keep who the caller was.
// Thread-safe.
class RecentErrors {
 public:
  static constexpr size_t kMost = 20;
  static constexpr size_t kMostSentenceBytes = 400;
  static constexpr size_t kMostFieldBytes = 100;
  static constexpr size_t kMostDigits = 12;

  // Calls that their callers have cancelled are no errors.
  void Add(absl::string_view rpc, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // The latest first.
  std::vector<RecentError> All() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  std::list<RecentError> errors_ ABSL_GUARDED_BY(mutex_);
};

// At most about `max_bytes` bytes. Of 32 or more hexadecimal digits in a row, such as the SHA-256
// that gives access to a model, or a token that a caller has put into the wrong field, only
// RecentErrors::kMostDigits are left.
std::string ShortenedSentence(absl::string_view text, size_t max_bytes);

}  // namespace opmill

#endif  // OPMILL_SERVER_OBSERVE_RECENT_ERRORS_H_
