// Counts the results of a soak, and its failures.
#ifndef OPMILL_TESTS_SOAK_LEDGER_H_
#define OPMILL_TESTS_SOAK_LEDGER_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace opmill {

// Thread-safe.
class Ledger {
 public:
  void Count(absl::string_view action, absl::StatusCode code);
  // Records a wrong result, or an unexplained error. The first ones are printed at once.
  void Fail(absl::string_view action, absl::string_view what);

  uint64_t failures() const;
  uint64_t total() const;
  void Print() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, uint64_t> counts_;  // by action and code
  uint64_t failures_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_SOAK_LEDGER_H_
