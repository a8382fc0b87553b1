#include "server/execution/compilations.h"

#include <utility>

#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"

namespace opmill {

uint64_t Compilations::Found::incremental_bytes() const {
  if (cached.has_value()) return cached->compiled->cost().incremental_bytes;
  return planned == nullptr ? 0 : planned->cost().incremental_bytes;
}

Compilations::Found Compilations::Find(const OperatorDesc& desc) {
  Found found = FindCached(desc);
  if (!found.cached.has_value()) Plan(desc, found);
  return found;
}

// A failure is left to Get, which counts it.
void Compilations::Plan(const OperatorDesc& desc, Found& found) {
  if (desc.inputs.size() != 1 ||
      SpannedBytes(desc.inputs[0]) < device_.info().min_incremental_bytes) {
    return;
  }
  const absl::Time start = SteadyNow();
  auto compiled = device_.Compile(desc);
  if (compiled.ok()) found.planned = *std::move(compiled);
  found.duration = SteadyNow() - start;
}

absl::StatusOr<CachedOperator> Compilations::Get(const OperatorDesc& desc, absl::Time deadline,
                                                 Found found) {
  if (found.cached.has_value()) return *std::move(found.cached);
  ASSIGN_OR_RETURN(CachedOperator got, cache_.Get(desc, deadline, std::move(found.planned)));
  got.duration += found.duration;
  return got;
}

absl::Status Compilations::Post(OperatorDesc desc, absl::Time deadline,
                                std::shared_ptr<const std::atomic<bool>> cancelled,
                                Admission::Load load,
                                std::function<void(absl::StatusOr<CachedOperator>)> done) {
  load.compilations = posted_.fetch_add(1);
  Found found;
  Plan(desc, found);
  absl::Status admitted = admission_.CheckCompilation(
      BufferSizes::Of(desc.inputs, OutputsOf(desc), found.incremental_bytes()), load);
  if (!admitted.ok()) {
    --posted_;
    return admitted;
  }
  workers_.PostLowPriority([this, desc = std::move(desc), deadline,
                            cancelled = std::move(cancelled), found = std::move(found),
                            done = std::move(done)]() mutable {
    if (*cancelled) {
      done(absl::CancelledError("The caller cancelled the call or is gone."));
    } else {
      done(Get(desc, deadline, std::move(found)));
    }
    --posted_;
  });
  return absl::OkStatus();
}

}  // namespace opmill
