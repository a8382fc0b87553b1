#include "server/http/rest_connections.h"

#include <tuple>
#include <utility>
#include <vector>

#include "server/execution/pace.h"

namespace opmill {

void RestProgress::Enter(Phase phase) {
  const absl::MutexLock lock(&mutex_);
  has_served_ = has_served_ || phase_ == Phase::kSending;
  phase_ = phase;
  since_ = SteadyNow();
  bytes_ = 0;
}

void RestProgress::Add(uint64_t bytes) {
  const absl::MutexLock lock(&mutex_);
  bytes_ += bytes;
}

RestProgress::Phase RestProgress::phase() const {
  const absl::MutexLock lock(&mutex_);
  return phase_;
}

bool RestProgress::has_served() const {
  const absl::MutexLock lock(&mutex_);
  return has_served_;
}

absl::Time RestProgress::since() const {
  const absl::MutexLock lock(&mutex_);
  return since_;
}

bool RestProgress::IsSlow(Phase phase, absl::Time now) const {
  const absl::MutexLock lock(&mutex_);
  return phase_ == phase && now - since_ > Pace::kPatience + Pace::TimeFor(bytes_);
}

bool RestConnections::Admit(Member& member) {
  const absl::MutexLock lock(&mutex_);
  const auto found = of_address_.find(member.address());
  const bool is_address_full = found != of_address_.end() && found->second >= max_per_address_;
  if (is_closing_) return false;
  if (is_address_full || members_.size() >= max_connections_) {
    Member* const victim = FindVictim(is_address_full ? member.address() : "");
    if (victim == nullptr) {
      ++refused_;
      return false;
    }
    ++closed_;
    Forget(*victim);
    leaving_.insert(victim);
    victim->Close();
  }
  members_.insert(&member);
  ++of_address_[member.address()];
  return true;
}

void RestConnections::Remove(Member& member) {
  const absl::MutexLock lock(&mutex_);
  if (leaving_.erase(&member) == 0) Forget(member);
}

void RestConnections::CloseSlow() {
  const absl::MutexLock lock(&mutex_);
  const absl::Time now = SteadyNow();
  for (Member* const member : members_) {
    if (!member->progress().IsSlow(RestProgress::Phase::kReceiving, now)) continue;
    ++closed_;
    member->Close();
  }
}

void RestConnections::CloseAll() {
  const absl::MutexLock lock(&mutex_);
  is_closing_ = true;
  for (Member* const member : members_) member->Close();
  mutex_.Await(absl::Condition(
      +[](RestConnections* self) ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return self->members_.empty() && self->leaving_.empty();
      },
      this));
}

uint64_t RestConnections::open() const {
  const absl::MutexLock lock(&mutex_);
  return members_.size();
}

RestConnections::Member* RestConnections::FindVictim(const std::string& address) {
  const absl::Time now = SteadyNow();
  absl::flat_hash_map<std::string, uint32_t> waiting;  // connections without a request, by address
  std::vector<Member*> candidates;
  for (Member* const member : members_) {
    if (!address.empty() && member->address() != address) continue;
    const RestProgress& progress = member->progress();
    if (progress.phase() == RestProgress::Phase::kIdle) {
      ++waiting[member->address()];
    } else if (!progress.IsSlow(RestProgress::Phase::kReceiving, now)) {
      continue;
    }
    candidates.push_back(member);
  }
  // Those that have been served go last; otherwise the address with the most, and the oldest.
  const auto rank = [&](Member* member) {
    return std::tuple(!member->progress().has_served(), waiting[member->address()],
                      now - member->progress().since());
  };
  Member* worst = nullptr;
  for (Member* const member : candidates) {
    if (worst == nullptr || rank(member) > rank(worst)) worst = member;
  }
  return worst;
}

void RestConnections::Forget(Member& member) {
  if (members_.erase(&member) == 0) return;
  const auto found = of_address_.find(member.address());
  if (--found->second == 0) of_address_.erase(found);
}

}  // namespace opmill
