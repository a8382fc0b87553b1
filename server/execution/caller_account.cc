#include "server/execution/caller_account.h"

#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace opmill {
namespace {

// Entries that one Find looks at to forget the idle. More than one, so that they do not pile up.
constexpr size_t kMostSearchedCallers = 4;

}  // namespace

std::string CallerIdentity(absl::string_view name, absl::string_view peer) {
  if (!name.empty()) return absl::StrCat("name:", name);
  if (absl::StartsWith(peer, "unix")) return "address:unix";
  if (!absl::ConsumePrefix(&peer, "ipv4:") && !absl::ConsumePrefix(&peer, "ipv6:")) {
    return absl::StrCat("address:", peer);
  }
  const size_t port = peer.rfind(':');
  const std::string address =
      absl::StrReplaceAll(peer.substr(0, port), {{"%5B", "["}, {"%5D", "]"}});
  return absl::StrCat("address:", address);
}

absl::Duration CallerAccount::CountBegin(absl::Time now) {
  const absl::MutexLock lock(&mutex_);
  return rate_.Take(now);
}

void CallerAccount::UncountBegin() {
  const absl::MutexLock lock(&mutex_);
  rate_.Return();
}

std::shared_ptr<CallerAccount> CallerAccounts::Find(absl::string_view name, absl::string_view peer,
                                                    absl::Time now) {
  std::string identity = CallerIdentity(name, peer);
  const absl::MutexLock lock(&mutex_);
  const auto found = by_identity_.find(identity);
  if (found != by_identity_.end()) {
    const Entries::iterator entry = found->second;
    entry->last_found = now;
    entries_.splice(entries_.end(), entries_, entry);
    std::shared_ptr<CallerAccount> account = entry->account;
    Forget(now);
    return account;
  }
  auto account =
      std::make_shared<CallerAccount>(std::move(identity), statistics_.OfCaller(name), rate_);
  entries_.push_back({account, now});
  by_identity_[account->identity()] = std::prev(entries_.end());
  count_ = entries_.size();
  Forget(now);
  return account;
}

// An account that only this class holds is idle: no thread can get a reference without the mutex.
void CallerAccounts::Forget(absl::Time now) {
  size_t searched = 0;
  while (searched++ < kMostSearchedCallers && entries_.size() > 1) {
    const auto oldest = entries_.begin();
    if (now - oldest->last_found < remembered_ && entries_.size() <= kMostIdle) break;
    if (oldest->account.use_count() > 1) {
      oldest->last_found = now;
      entries_.splice(entries_.end(), entries_, oldest);
      continue;
    }
    by_identity_.erase(oldest->account->identity());
    entries_.erase(oldest);
  }
  count_ = entries_.size();
}

}  // namespace opmill
