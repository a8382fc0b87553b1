#include "server/execution/batches.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "kernels/base/steady_time.h"
#include "server/execution/execution.h"
#include "server/execution/joinable.h"
#include "server/execution/joined_run.h"
#include "server/observe/log.h"

namespace opmill {
namespace {

// Groups that are kept although none of their executions is in progress.
constexpr size_t kMostGroups = 256;
// After a joined program took too long, none is made for its shape for so many times the limit: a
// worker spends at most a tenth of its time in vain.
constexpr int64_t kPause = 10;

BatchOptions Limited(BatchOptions options, uint64_t row_bytes) {
  options.max_rows = static_cast<uint32_t>(std::clamp<uint64_t>(
      kMostJoinedBytes / std::max<uint64_t>(row_bytes, 1), 1, options.max_rows));
  std::erase_if(options.preferred_rows, [&](uint32_t rows) { return rows > options.max_rows; });
  return options;
}

}  // namespace

class BatchGroup {
 public:
  BatchGroup(Batches& batches, std::unique_ptr<const Joinable> joinable, uint64_t row_bytes)
      : batches_(batches),
        joinable_(std::move(joinable)),
        limited_(Limited(joinable_->options(), row_bytes)),
        queue_(limited_) {}

 private:
  friend struct Batch;
  friend class Batches;

  Batches& batches_;
  const std::unique_ptr<const Joinable> joinable_;
  const BatchOptions limited_;
  absl::Mutex mutex_;
  BatchQueue queue_ ABSL_GUARDED_BY(mutex_);
  // Of Advance, if no other event comes before.
  std::pair<absl::Time, DeadlineTimer::Handle> timer_ ABSL_GUARDED_BY(mutex_) = {
      absl::InfiniteFuture(), DeadlineTimer::kNone};
  bool is_making_ ABSL_GUARDED_BY(mutex_) = false;  // a joined program
  // Those that have none until then.
  absl::flat_hash_map<JoinedShape, absl::Time> refused_until_ ABSL_GUARDED_BY(mutex_);
};

Batch::~Batch() {
  {
    const absl::MutexLock lock(&group->mutex_);
    group->queue_.RunEnded();
  }
  group->batches_.Advance(group);
}

std::shared_ptr<BatchGroup> Batches::GroupOf(const ExecutionRequest& request, uint64_t row_bytes) {
  std::unique_ptr<const Joinable> joinable = Joinable::Of(request);
  if (joinable == nullptr) return nullptr;
  const absl::MutexLock lock(&mutex_);
  std::shared_ptr<BatchGroup>& group = groups_[joinable->Key()];
  if (group == nullptr || !group->joinable_->IsSameAs(*joinable)) {
    group = std::make_shared<BatchGroup>(*this, std::move(joinable), row_bytes);
  }
  std::shared_ptr<BatchGroup> found = group;
  if (groups_.size() > kMostGroups) {
    absl::erase_if(groups_, [](const auto& of) { return of.second.use_count() == 1; });
  }
  return request.rows() > found->limited_.max_rows ? nullptr : found;
}

void Batches::Add(const std::shared_ptr<Execution>& execution) {
  const ExecutionRequest& request = execution->request();
  const std::shared_ptr<BatchGroup>& group = execution->batch_group();
  {
    const absl::MutexLock lock(&group->mutex_);
    group->queue_.Add(execution, request.origin.account.get(), request.priority, request.rows(),
                      request.deadline, SteadyNow());
  }
  Advance(group);
}

void Batches::Remove(const Execution& execution) {
  const std::shared_ptr<BatchGroup>& group = execution.batch_group();
  const absl::MutexLock lock(&group->mutex_);
  group->queue_.Remove(&execution);
}

void Batches::Advance(const std::shared_ptr<BatchGroup>& group) {
  for (;;) {
    BatchQueue::Next next;
    DeadlineTimer::Handle outdated = DeadlineTimer::kNone;
    {
      const absl::MutexLock lock(&group->mutex_);
      next = group->queue_.Take(SteadyNow());
      if (next.again != group->timer_.first) {
        outdated = group->timer_.second;
        group->timer_.first = next.again;
        group->timer_.second =
            timer_.Add(next.again, [this, weak = std::weak_ptr<BatchGroup>(group)] {
              if (const auto waiting = weak.lock()) Advance(waiting);
            });
      }
    }
    timer_.Remove(outdated);
    if (next.batch.empty()) return;
    submit_(next.batch, MakeBatch(group, next.batch));
  }
}

std::shared_ptr<Batch> Batches::MakeBatch(const std::shared_ptr<BatchGroup>& group,
                                          const std::vector<std::shared_ptr<Execution>>& members) {
  const auto batch = std::make_shared<Batch>();
  batch->group = group;
  // 0: the bits of a result depend on what shares its run.
  if (members.size() == 1 || members[0]->rounding() == 0) return batch;
  uint32_t rows = 0;
  for (const auto& member : members) rows += member->request().rows();
  const JoinedShape shape =
      group->joinable_->ShapeOf(members, JoinedRows(rows, group->limited_.max_rows));
  std::shared_ptr<const CompiledProgram> joined = FindJoined(group, shape);
  if (joined == nullptr) return batch;
  for (const auto& member : members) {
    if (!CanJoin(*member, *joined, shape.rows)) {
      const absl::MutexLock lock(&group->mutex_);
      if (group->refused_until_.try_emplace(shape, absl::InfiniteFuture()).second) {
        LogLine(LogLevel::kWarning, "batch")
            .Add("model", member->request().description())
            .Add("rows", uint64_t{shape.rows})
            .Add("error", "Results of this size would not have the bits that they have alone.");
      }
      return batch;
    }
  }
  batch->joined = std::move(joined);
  batch->rows = shape.rows;
  batch->members = members;
  return batch;
}

// Null if it is not compiled, and that takes time. Then a worker makes it, and this batch does not
// wait for it.
std::shared_ptr<const CompiledProgram> Batches::FindJoined(const std::shared_ptr<BatchGroup>& group,
                                                           const JoinedShape& shape) {
  if (std::shared_ptr<const Program> program = group->joinable_->Find(shape); program != nullptr) {
    const Compilations::Found found =
        compilations_.Find(std::nullopt, /*has_whole_input=*/true, program);
    if (found.cached.has_value()) return found.cached->compiled;
    if (group->joinable_->is_operator() && compilations_.is_cheap()) {
      const auto made = compilations_.Get(*program, absl::InfiniteFuture(), {});
      if (made.ok()) return made->compiled;
    }
  }
  {
    const absl::MutexLock lock(&group->mutex_);
    const auto refused = group->refused_until_.find(shape);
    const bool is_refused = refused != group->refused_until_.end() && SteadyNow() < refused->second;
    if (group->is_making_ || is_refused) return nullptr;
    group->is_making_ = true;
  }
  workers_.PostLowPriority([this, group, shape] { MakeJoined(group, shape); });
  return nullptr;
}

void Batches::MakeJoined(const std::shared_ptr<BatchGroup>& group, const JoinedShape& shape) {
  const absl::StatusOr<JoinedProgram> joined = group->joinable_->Make(shape, limit_);
  absl::Status made = joined.status();
  if (joined.ok() && joined->program != nullptr) {
    made = compilations_.Get(*joined->program, joined->limited).status();
  }
  const absl::MutexLock lock(&group->mutex_);
  group->is_making_ = false;
  group->refused_until_.erase(shape);
  if (made.ok() || absl::IsUnavailable(made) || absl::IsCancelled(made)) return;
  const absl::Duration pause =
      TookTooLong(made) ? kPause * limit_.most() : absl::InfiniteDuration();
  group->refused_until_.emplace(shape, SteadyNow() + pause);
  LogLine(LogLevel::kWarning, "batch")
      .Add("rows", uint64_t{shape.rows})
      .Add("error", made.message());
}

}  // namespace opmill
