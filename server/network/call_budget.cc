#include "server/network/call_budget.h"

#include <algorithm>

namespace opmill {
namespace {

// An address may abandon 512 calls at once and 256 per second, all together four times as many. On
// a machine that other programs keep busy, the server drops no more than 1000 per second.
constexpr double kAbandonedAtOnce = double{8 << 20};
constexpr double kAllAbandonedAtOnce = double{32 << 20};
constexpr double kSecondsToRefill = 2;
// After the allowance has been exceeded, its refill takes no more than this much longer.
constexpr double kMostSecondsBehind = 1;
// The calls that a new connection may have open while the allowance is exceeded.
constexpr int64_t kFirstCalls = 16;
// A client that does not know the limit yet may exceed it for a moment, and calls that it has reset
// count until the transport has released them.
constexpr uint32_t kMostTimesTheLimit = 2;
// Addresses without connections are forgotten once there are this many addresses.
constexpr size_t kManyAddresses = 4096;

}  // namespace

struct CallBudget::Address {
  uint64_t open_bytes = 0;  // without those of closed connections
  Allowance allowance;
  absl::flat_hash_set<Account*> accounts;
};

class CallBudget::Account {
 private:
  friend class CallBudget;
  Account(std::string peer, Address& address) : peer_(std::move(peer)), address_(address) {}

  const std::string peer_;
  Address& address_;
  uint64_t open_bytes_ = 0;
  uint32_t open_calls_ = 0;
  int64_t credit_ = kFirstCalls;
  bool is_closed_ = false;
};

CallBudget::CallBudget(uint64_t max_open_bytes, uint32_t max_calls_per_connection)
    : max_open_bytes_(max_open_bytes),
      max_open_bytes_per_address_(max_open_bytes - max_open_bytes / 4),
      max_calls_per_connection_(max_calls_per_connection),
      allowance_({.left_bytes = kAllAbandonedAtOnce}) {}

CallBudget::~CallBudget() = default;

CallBudget::Account* CallBudget::Open(std::string peer, const std::string& address,
                                      absl::Duration now) {
  const absl::MutexLock lock(&mutex_);
  if (addresses_.size() >= kManyAddresses) ForgetIdleAddresses(now);
  std::unique_ptr<Address>& of = addresses_[address];
  if (of == nullptr) {
    of = std::make_unique<Address>();
    of->allowance = {.left_bytes = kAbandonedAtOnce, .refilled_at = now};
  }
  auto* const account = new Account(std::move(peer), *of);
  of->accounts.insert(account);
  return account;
}

void CallBudget::Close(Account* account) {
  const absl::MutexLock lock(&mutex_);
  account->address_.accounts.erase(account);
  delete account;
}

void CallBudget::Refill(Allowance& allowance, double most_bytes, absl::Duration now) const {
  const double seconds = absl::ToDoubleSeconds(now - allowance.refilled_at);
  const double refilled = allowance.left_bytes + seconds * most_bytes / kSecondsToRefill;
  allowance.left_bytes = std::min(refilled, most_bytes);
  allowance.refilled_at = now;
}

std::optional<CallBudget::Closing> CallBudget::Begin(Account& account, absl::Duration now) {
  const absl::MutexLock lock(&mutex_);
  ++account.open_calls_;
  account.open_bytes_ += kBytesOfCall;
  if (account.is_closed_) return Closing{account.peer_, Excess::kOpenCalls};
  open_bytes_ += kBytesOfCall;
  account.address_.open_bytes += kBytesOfCall;
  if (account.open_calls_ > kMostTimesTheLimit * max_calls_per_connection_) {
    return MarkClosed(account, Excess::kOpenCalls);
  }
  if (account.open_calls_ > account.credit_) {
    Refill(allowance_, kAllAbandonedAtOnce, now);
    Refill(account.address_.allowance, kAbandonedAtOnce, now);
    if (std::min(allowance_.left_bytes, account.address_.allowance.left_bytes) < 0) {
      return MarkClosed(account, Excess::kAbandonedCalls);
    }
  }
  return CheckOpen(account.address_);
}

std::optional<CallBudget::Closing> CallBudget::AddMetadata(Account& account, uint64_t bytes) {
  const absl::MutexLock lock(&mutex_);
  account.open_bytes_ += bytes;
  if (account.is_closed_) return Closing{account.peer_, Excess::kOpenCalls};
  open_bytes_ += bytes;
  account.address_.open_bytes += bytes;
  return CheckOpen(account.address_);
}

void CallBudget::Abandon(Account& account, uint64_t bytes, absl::Duration now) {
  const absl::MutexLock lock(&mutex_);
  --account.credit_;
  const auto take = [&](Allowance& allowance, double most_bytes) {
    Refill(allowance, most_bytes, now);
    allowance.left_bytes = std::max(allowance.left_bytes - static_cast<double>(bytes),
                                    -most_bytes / kSecondsToRefill * kMostSecondsBehind);
  };
  take(allowance_, kAllAbandonedAtOnce);
  take(account.address_.allowance, kAbandonedAtOnce);
}

void CallBudget::End(Account& account, uint64_t bytes, bool is_completed) {
  const absl::MutexLock lock(&mutex_);
  --account.open_calls_;
  account.open_bytes_ -= bytes;
  const int64_t most_credit = int64_t{kMostTimesTheLimit} * max_calls_per_connection_;
  if (is_completed) account.credit_ = std::min(account.credit_ + 1, most_credit);
  if (account.is_closed_) return;
  open_bytes_ -= bytes;
  account.address_.open_bytes -= bytes;
}

std::optional<CallBudget::Closing> CallBudget::CheckOpen(Address& address) {
  Address* worst = nullptr;
  if (open_bytes_ > max_open_bytes_) {
    worst =
        std::max_element(addresses_.begin(), addresses_.end(), [](const auto& a, const auto& b) {
          return a.second->open_bytes < b.second->open_bytes;
        })->second.get();
  } else if (address.open_bytes > max_open_bytes_per_address_) {
    worst = &address;
  } else {
    return std::nullopt;
  }
  Account* most = nullptr;
  for (Account* const account : worst->accounts) {
    if (account->is_closed_) continue;
    if (most == nullptr || account->open_bytes_ > most->open_bytes_) most = account;
  }
  if (most == nullptr) return std::nullopt;
  return MarkClosed(*most, Excess::kOpenCalls);
}

CallBudget::Closing CallBudget::MarkClosed(Account& account, Excess excess) {
  account.is_closed_ = true;
  open_bytes_ -= account.open_bytes_;
  account.address_.open_bytes -= account.open_bytes_;
  return {account.peer_, excess};
}

void CallBudget::ForgetIdleAddresses(absl::Duration now) {
  absl::erase_if(addresses_, [&](auto& entry) {
    Refill(entry.second->allowance, kAbandonedAtOnce, now);
    return entry.second->accounts.empty() && entry.second->allowance.left_bytes >= kAbandonedAtOnce;
  });
}

}  // namespace opmill
