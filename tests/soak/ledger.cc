#include "tests/soak/ledger.h"

#include <cstdio>

#include "absl/strings/str_format.h"

namespace opmill {
namespace {

constexpr uint64_t kMostPrinted = 20;

}  // namespace

void Ledger::Count(absl::string_view action, absl::StatusCode code) {
  const std::lock_guard lock(mutex_);
  ++counts_[{std::string(action), absl::StatusCodeToString(code)}];
}

void Ledger::Fail(absl::string_view action, absl::string_view what) {
  const std::lock_guard lock(mutex_);
  if (++failures_ > kMostPrinted) return;
  absl::FPrintF(stderr, "soak: FAILURE in %s: %s\n", action, what);
}

uint64_t Ledger::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

uint64_t Ledger::total() const {
  const std::lock_guard lock(mutex_);
  uint64_t total = 0;
  for (const auto& [key, count] : counts_) total += count;
  return total;
}

void Ledger::Print() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, count] : counts_) {
    absl::PrintF("  %-22s %-20s %9d\n", key.first, key.second, count);
  }
}

}  // namespace opmill
