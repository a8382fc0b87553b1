#include "server/execution/shared_limit.h"

#include <algorithm>

namespace opmill {
namespace {

constexpr uint64_t kLeftForOthers = 8;    // the part of the limit
constexpr uint64_t kBeyondTheLimit = 64;  // the same

}  // namespace

uint64_t SharedLimit::LimitFor(const Holding& by, uint64_t amount, bool has_others) const {
  if (!has_others) return limit_;
  const uint64_t held = by.amount.load(std::memory_order_relaxed);
  if (amount > limit_ || held > limit_ - amount) return limit_;
  const uint64_t wanted = held + amount;
  const uint64_t small = limit_ / kBeyondTheLimit;
  if (wanted <= small) return limit_ + small;
  const uint64_t holders = holders_.load(std::memory_order_relaxed);
  if (held == 0 || wanted <= limit_ / std::max<uint64_t>(2, holders)) return limit_;
  return limit_ - limit_ / kLeftForOthers;
}

bool SharedLimit::ExceedsShare(const Holding& of, const Holding& asking) const {
  const uint64_t holders = holders_.load(std::memory_order_relaxed) +
                           (asking.amount.load(std::memory_order_relaxed) == 0 ? 1 : 0);
  return of.amount.load(std::memory_order_relaxed) > limit_ / std::max<uint64_t>(1, holders);
}

bool SharedLimit::TryTake(Holding& by, uint64_t amount, uint64_t up_to) {
  uint64_t used = used_.load();
  do {
    if (used > up_to || amount > up_to - used) return false;
  } while (!used_.compare_exchange_weak(used, used + amount));
  CountHolder(by, amount);
  return true;
}

void SharedLimit::Take(Holding& by, uint64_t amount) {
  used_ += amount;
  CountHolder(by, amount);
}

void SharedLimit::CountHolder(Holding& by, uint64_t amount) {
  if (amount > 0 && by.amount.fetch_add(amount) == 0) ++holders_;
}

void SharedLimit::Return(Holding& by, uint64_t amount) {
  if (amount > 0 && by.amount.fetch_sub(amount) == amount) --holders_;
  used_ -= amount;
}

}  // namespace opmill
