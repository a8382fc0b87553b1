#include "server/execution/batches.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/base/steady_time.h"
#include "server/execution/execution.h"
#include "server/execution/joined_run.h"
#include "server/observe/log.h"

namespace opmill {
namespace {

// Groups that are kept although none of their executions is in progress.
constexpr size_t kMostGroups = 256;

onnx::InputBindings WithRows(onnx::InputBindings bindings, uint32_t rows) {
  for (auto& [name, sizes] : bindings.sizes) sizes[0] = rows;
  return bindings;
}

// A joined run is not larger than what the device gets at once.
BatchOptions Limited(BatchOptions options, uint64_t row_bytes) {
  constexpr uint64_t kMostBytes = uint64_t{32} << 20;
  options.max_rows = static_cast<uint32_t>(
      std::clamp<uint64_t>(kMostBytes / std::max<uint64_t>(row_bytes, 1), 1, options.max_rows));
  std::erase_if(options.preferred_rows, [&](uint32_t rows) { return rows > options.max_rows; });
  return options;
}

std::shared_ptr<const Program> ProgramOf(std::shared_ptr<const onnx::ModelProgram> program) {
  const Program* const of = &program->program;
  return {std::move(program), of};
}

}  // namespace

class BatchGroup {
 public:
  BatchGroup(Batches& batches, const RequestedModel& first, uint64_t row_bytes)
      : batches_(batches),
        model_(first.model->graph),
        bindings_(first.graph->bindings),
        options_(*first.model->batching),
        limited_(Limited(options_, row_bytes)),
        queue_(limited_) {}

 private:
  friend struct Batch;
  friend class Batches;

  Batches& batches_;
  const std::weak_ptr<const onnx::Model> model_;  // an unloaded model is not kept
  const onnx::InputBindings bindings_;
  const BatchOptions options_;  // of the model
  const BatchOptions limited_;
  absl::Mutex mutex_;
  BatchQueue queue_ ABSL_GUARDED_BY(mutex_);
  // Of Advance, if no other event comes before.
  std::pair<absl::Time, DeadlineTimer::Handle> timer_ ABSL_GUARDED_BY(mutex_) = {
      absl::InfiniteFuture(), DeadlineTimer::kNone};
  bool is_making_ ABSL_GUARDED_BY(mutex_) = false;                 // a joined program
  absl::flat_hash_set<uint32_t> refused_ ABSL_GUARDED_BY(mutex_);  // rows that have none
};

Batch::~Batch() {
  {
    const absl::MutexLock lock(&group->mutex_);
    group->queue_.RunEnded();
  }
  group->batches_.Advance(group);
}

std::shared_ptr<BatchGroup> Batches::GroupOf(const RequestedModel& requested, uint64_t row_bytes) {
  const Model& model = *requested.model;
  if (!model.batching.has_value()) return nullptr;
  std::pair<const onnx::Model*, std::string> key(
      model.graph.get(), onnx::KeyOf(WithRows(requested.graph->bindings, 0)));
  const absl::MutexLock lock(&mutex_);
  std::shared_ptr<BatchGroup>& group = groups_[key];
  if (group != nullptr && group->model_.lock() == model.graph &&
      group->options_ == *model.batching) {
    return group;
  }
  const auto made = std::make_shared<BatchGroup>(*this, requested, row_bytes);
  group = made;
  if (groups_.size() > kMostGroups) {
    absl::erase_if(groups_, [](const auto& of) { return of.second.use_count() == 1; });
  }
  return made;
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
  if (members.size() == 1) return batch;
  uint32_t rows = 0;
  for (const auto& member : members) rows += member->request().rows();
  const uint32_t joined_rows = JoinedRows(rows, group->limited_.max_rows);
  std::shared_ptr<const CompiledProgram> joined = FindJoined(group, joined_rows);
  if (joined == nullptr) return batch;
  for (const auto& member : members) {
    if (!CanJoin(*member, *joined, joined_rows)) {
      const absl::MutexLock lock(&group->mutex_);
      if (group->refused_.insert(joined_rows).second) {
        LogLine(LogLevel::kWarning, "batch")
            .Add("model", member->request().description())
            .Add("rows", uint64_t{joined_rows})
            .Add("error", "Results of this size would not have the bits that they have alone.");
      }
      return batch;
    }
  }
  batch->joined = std::move(joined);
  batch->members = members;
  return batch;
}

// Null if it is not compiled. Then a worker makes it, and this batch does not wait for it.
std::shared_ptr<const CompiledProgram> Batches::FindJoined(const std::shared_ptr<BatchGroup>& group,
                                                           uint32_t rows) {
  const std::shared_ptr<const onnx::Model> model = group->model_.lock();
  if (model == nullptr) return nullptr;
  if (auto made = model->FindProgram(WithRows(group->bindings_, rows)); made != nullptr) {
    std::shared_ptr<const Program> program = ProgramOf(std::move(made));
    const Compilations::Found found =
        compilations_.Find(std::nullopt, /*has_whole_input=*/true, program);
    if (found.cached.has_value()) return found.cached->compiled;
  }
  {
    const absl::MutexLock lock(&group->mutex_);
    if (group->is_making_ || group->refused_.contains(rows)) return nullptr;
    group->is_making_ = true;
  }
  workers_.PostLowPriority([this, group, rows] { MakeJoined(group, rows); });
  return nullptr;
}

void Batches::MakeJoined(const std::shared_ptr<BatchGroup>& group, uint32_t rows) {
  absl::Status made = absl::OkStatus();
  if (const std::shared_ptr<const onnx::Model> model = group->model_.lock(); model != nullptr) {
    auto program = model->ProgramFor(WithRows(group->bindings_, rows));
    made = program.status();
    if (program.ok()) {
      made =
          compilations_.Get(*ProgramOf(*std::move(program)), absl::InfiniteFuture(), {}).status();
    }
  }
  const absl::MutexLock lock(&group->mutex_);
  group->is_making_ = false;
  if (made.ok() || absl::IsUnavailable(made)) return;
  group->refused_.insert(rows);
  LogLine(LogLevel::kWarning, "batch").Add("rows", uint64_t{rows}).Add("error", made.message());
}

}  // namespace opmill
