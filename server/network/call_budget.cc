#include "server/network/call_budget.h"

#include <algorithm>

namespace opmill {
namespace {

// An address may have 4096 calls that have not completed, and abandon 512 per second; all together
// twice as many. A call without an answer takes 0.15 ms of a processor, and the calls of others
// wait meanwhile.
constexpr uint64_t kAllowedBytes = uint64_t{64} << 20;
constexpr uint64_t kAllAllowedBytes = 2 * kAllowedBytes;
constexpr double kSecondsToRefill = 8;
// After an allowance has been exceeded, its refill takes no more than this much longer.
constexpr double kMostSecondsBehind = 1;
// The calls that a new connection may have open while an allowance is exceeded. A connection with
// less is not closed because of the cost of all.
constexpr int64_t kFirstCalls = 16;
// The same for a connection of an address that opens more than this many at once, or a sixteenth of
// it per second: it could open connections to abandon their first calls.
constexpr uint64_t kManyConnections = 128;
constexpr int64_t kFirstCallsOfMany = 1;
// The control frames of an address, and 4096 per second: a client that measures its bandwidth may
// send a PING per round trip. One for which gRPC closes the connection takes 3.5 us.
constexpr uint64_t kControlFrames = uint64_t{32} << 10;
// Those of a connection that are always allowed, and 8 per second.
constexpr uint64_t kFirstControlFrames = 64;
// A client that does not know the limit yet may exceed it for a moment, and calls that it has reset
// count until the transport has released them.
constexpr uint32_t kMostTimesTheLimit = 2;
// Addresses without connections are forgotten once there are this many addresses.
constexpr size_t kManyAddresses = 4096;

}  // namespace

struct CallBudget::Address {
  explicit Address(uint64_t allowed_bytes) : allowance(allowed_bytes) {}

  uint64_t open_bytes = 0;
  Allowance allowance;
  Allowance new_connections{kManyConnections};
  Allowance control_frames{kControlFrames};
  absl::flat_hash_set<Account*> accounts;
};

class CallBudget::Account {
 private:
  friend class CallBudget;
  Account(std::string peer, Address& address, int64_t credit)
      : peer_(std::move(peer)), address_(address), credit_(credit) {}

  bool exceeds(int64_t calls) const {
    return static_cast<int64_t>(open_bytes_) > calls * static_cast<int64_t>(kBytesOfCall);
  }

  const std::string peer_;
  Address& address_;
  uint64_t open_bytes_ = 0;
  uint32_t open_calls_ = 0;
  int64_t credit_;  // calls that it may have open while an allowance is exceeded
  Allowance control_frames_{kFirstControlFrames};
  bool is_closed_ = false;
};

CallBudget::Allowance::Allowance(uint64_t most) : most_(static_cast<double>(most)), left_(most_) {}

void CallBudget::Allowance::Take(double count, absl::Time now) {
  const double per_second = most_ / kSecondsToRefill;
  const double refilled = absl::ToDoubleSeconds(now - refilled_at_) * per_second;
  const double left = std::min(left_ + refilled, most_) - count;
  left_ = std::clamp(left, -per_second * kMostSecondsBehind, most_);
  refilled_at_ = now;
}

CallBudget::CallBudget(uint64_t max_open_bytes, uint32_t max_calls_per_connection)
    : max_open_bytes_(max_open_bytes),
      max_open_bytes_per_address_(max_open_bytes - max_open_bytes / 4),
      max_calls_per_connection_(max_calls_per_connection),
      allowance_(std::min(kAllAllowedBytes, max_open_bytes_)) {}

CallBudget::~CallBudget() = default;

CallBudget::Account* CallBudget::Open(std::string peer, const std::string& address,
                                      absl::Time now) {
  const absl::MutexLock lock(&mutex_);
  if (addresses_.size() >= kManyAddresses) ForgetIdleAddresses(now);
  std::unique_ptr<Address>& of = addresses_[address];
  if (of == nullptr) {
    of = std::make_unique<Address>(std::min(kAllowedBytes, max_open_bytes_per_address_));
  }
  of->new_connections.Take(1, now);
  const int64_t credit = of->new_connections.is_exceeded() ? kFirstCallsOfMany : kFirstCalls;
  auto* const account = new Account(std::move(peer), *of, credit);
  of->accounts.insert(account);
  return account;
}

void CallBudget::Close(Account* account) {
  const absl::MutexLock lock(&mutex_);
  account->address_.accounts.erase(account);
  delete account;
}

std::optional<CallBudget::Closing> CallBudget::Begin(Account& account, absl::Time now) {
  const absl::MutexLock lock(&mutex_);
  ++account.open_calls_;
  return Add(account, kBytesOfCall, now);
}

std::optional<CallBudget::Closing> CallBudget::AddMetadata(Account& account, uint64_t bytes,
                                                           absl::Time now) {
  const absl::MutexLock lock(&mutex_);
  return Add(account, bytes, now);
}

std::optional<CallBudget::Closing> CallBudget::Add(Account& account, uint64_t bytes,
                                                   absl::Time now) {
  Address& address = account.address_;
  account.open_bytes_ += bytes;
  address.open_bytes += bytes;
  open_bytes_ += bytes;
  for (Allowance* const allowance : {&allowance_, &address.allowance}) {
    allowance->Take(static_cast<double>(bytes), now);
  }
  const auto close = [](Account& closed, Excess excess) {
    closed.is_closed_ = true;
    return Closing{closed.peer_, excess};
  };
  if (account.is_closed_ || account.open_calls_ > kMostTimesTheLimit * max_calls_per_connection_) {
    return close(account, Excess::kOpenCalls);
  }
  if ((allowance_.is_exceeded() || address.allowance.is_exceeded()) &&
      account.exceeds(account.credit_)) {
    return close(account, Excess::kAbandonedCalls);
  }
  if (Account* const worst = FindWorst(address)) return close(*worst, Excess::kOpenCalls);
  return std::nullopt;
}

void CallBudget::End(Account& account, uint64_t bytes, bool is_completed, absl::Time now) {
  const absl::MutexLock lock(&mutex_);
  --account.open_calls_;
  account.open_bytes_ -= bytes;
  account.address_.open_bytes -= bytes;
  open_bytes_ -= bytes;
  if (!is_completed) {
    --account.credit_;
    return;
  }
  const int64_t most_credit = int64_t{kMostTimesTheLimit} * max_calls_per_connection_;
  account.credit_ = std::min(account.credit_ + 1, most_credit);
  for (Allowance* const allowance : {&allowance_, &account.address_.allowance}) {
    allowance->Take(-static_cast<double>(bytes), now);
  }
}

bool CallBudget::AllowControlFrames(Account& account, uint64_t count, absl::Time now) {
  const absl::MutexLock lock(&mutex_);
  account.control_frames_.Take(static_cast<double>(count), now);
  if (!account.control_frames_.is_exceeded()) return true;
  Allowance& of_address = account.address_.control_frames;
  of_address.Take(static_cast<double>(count), now);
  return !of_address.is_exceeded();
}

CallBudget::Account* CallBudget::FindWorst(const Address& address) const {
  const bool is_over = open_bytes_ > max_open_bytes_;
  if (!is_over && address.open_bytes <= max_open_bytes_per_address_) return nullptr;
  Account* worst = nullptr;
  const auto cost = [](const Account& account) {
    return std::pair(account.address_.open_bytes, account.open_bytes_);
  };
  for (const auto& [name, each] : addresses_) {
    if (!is_over && each.get() != &address) continue;
    for (Account* const account : each->accounts) {
      // What closed ones cost is released soon.
      if (account->is_closed_ || !account->exceeds(kFirstCalls)) continue;
      if (worst == nullptr || cost(*account) > cost(*worst)) worst = account;
    }
  }
  return worst;
}

void CallBudget::ForgetIdleAddresses(absl::Time now) {
  absl::erase_if(addresses_, [&](auto& entry) {
    Address& address = *entry.second;
    address.allowance.Take(0, now);
    address.new_connections.Take(0, now);
    address.control_frames.Take(0, now);
    return address.accounts.empty() && address.allowance.is_full() &&
           address.new_connections.is_full() && address.control_frames.is_full();
  });
}

}  // namespace opmill
