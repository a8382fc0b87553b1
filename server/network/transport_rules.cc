#include "server/network/transport_rules.h"

#include <utility>

#include "absl/synchronization/mutex.h"

namespace opmill {
namespace {

struct Shared {
  absl::Mutex mutex;
  std::shared_ptr<const TransportRules> rules ABSL_GUARDED_BY(mutex);
};

Shared& GetShared() {
  static Shared& shared = *new Shared();
  return shared;
}

}  // namespace

void SetTransportRules(std::shared_ptr<const TransportRules> rules) {
  Shared& shared = GetShared();
  const absl::MutexLock lock(&shared.mutex);
  shared.rules = std::move(rules);
}

std::shared_ptr<const TransportRules> CurrentTransportRules() {
  Shared& shared = GetShared();
  const absl::MutexLock lock(&shared.mutex);
  return shared.rules;
}

}  // namespace opmill
