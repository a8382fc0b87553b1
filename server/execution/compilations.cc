#include "server/execution/compilations.h"

#include <utility>

#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"

namespace opmill {

uint64_t Compilations::Found::incremental_bytes() const {
  if (cached.has_value()) return cached->compiled->cost().incremental_bytes;
  return planned == nullptr ? 0 : planned->cost().incremental_bytes;
}

Compilations::Found Compilations::Find(const std::optional<OperatorDesc>& op, bool has_whole_input,
                                       std::shared_ptr<const Program>& program) {
  Found found;
  if (op.has_value()) found.cached = cache_.FindNormalized(*op);
  if (found.cached.has_value()) {
    program = found.cached->program;
    return found;
  }
  if (program == nullptr) program = std::make_shared<const Program>(ProgramOf(*op));
  found.cached = cache_.Find(program);
  if (!found.cached.has_value() && !has_whole_input) Plan(*program, found);
  return found;
}

// A failure is left to Get, which counts it.
void Compilations::Plan(const Program& program, Found& found) {
  const OperatorDesc* const desc = OperatorOf(program);
  if (desc == nullptr || desc->inputs.size() != 1 ||
      SpannedBytes(desc->inputs[0]) < device_.info().min_incremental_bytes) {
    return;
  }
  const absl::Time start = SteadyNow();
  auto compiled = device_.Compile(program);
  if (compiled.ok()) found.planned = *std::move(compiled);
  found.duration = SteadyNow() - start;
}

absl::StatusOr<CachedOperator> Compilations::Get(const Program& program, absl::Time deadline,
                                                 Found found) {
  if (found.cached.has_value()) return *std::move(found.cached);
  ASSIGN_OR_RETURN(CachedOperator got,
                   cache_.Get(program, deadline, {.compiled = std::move(found.planned)}));
  got.duration += found.duration;
  return got;
}

CacheRequest Compilations::RequestOf(const LimitedProgram& limited, std::stop_token cancelled) {
  CacheRequest request = {.cancelled = std::move(cancelled)};
  if (limited.model.empty()) return request;
  request.compile = [this, limited](const Program& program, const std::stop_source& abandoned) {
    return limit_.Run(limited, abandoned, [&](const std::stop_token& token) {
      return device_.Compile(program, token);
    });
  };
  return request;
}

absl::Status Compilations::Post(Wanted wanted, Admission::Load load, OperatorCache::Done done) {
  load.compilations = posted_.fetch_add(1);
  Found found;
  Plan(wanted.program, found);
  absl::Status admitted =
      admission_.CheckCompilation(BufferSizes::Of(wanted.program, found.incremental_bytes()), load);
  if (!admitted.ok()) {
    --posted_;
    return admitted;
  }
  const std::stop_token cancelled = wanted.cancelled;
  auto compile = [this, wanted = std::move(wanted), found = std::move(found),
                  done = std::move(done)]() mutable {
    CacheRequest request = RequestOf(wanted.limited, std::move(wanted.cancelled));
    request.compiled = std::move(found.planned);
    cache_.Get(wanted.program, std::move(request),
               [this, planned = found.duration, limited = std::move(wanted.limited),
                done = std::move(done)](absl::StatusOr<CachedOperator> got) {
                 --posted_;
                 if (got.ok()) got->duration += planned;
                 done(ForCaller(limited, std::move(got)));
               });
  };
  workers_.PostLowPriority(std::move(compile), cancelled);
  return absl::OkStatus();
}

}  // namespace opmill
