#include "server/execution/model_programs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "server/status/retry_delay.h"

namespace opmill {
class ModelPrograms::Wait {
 private:
  friend class ModelPrograms;
  // Under the lock of ModelPrograms.
  std::function<void(const Made&)> done;  // null once the wait has ended
  std::shared_ptr<Making> making;
  std::shared_ptr<CallerAccount> caller;
  std::list<std::shared_ptr<Wait>>::iterator position;
  DeadlineTimer::Handle deadline = DeadlineTimer::kNone;
};

struct ModelPrograms::Making {
  Key key;
  LimitedProgram of;
  DoWork work;
  std::shared_ptr<CallerAccount> caller;  // the first one that needs it
  std::list<std::shared_ptr<Wait>> waits;
  bool has_begun = false;
  Queue::Place place;  // until it has begun
  std::stop_source abandoned;
};

ModelPrograms::ModelPrograms(Executor& executor, uint64_t max_waits)
    : executor_(executor), waits_(max_waits), max_making_(std::max(3u, executor.workers()) - 2) {}

absl::Status ModelPrograms::TooManyWait(uint64_t up_to) const {
  const uint64_t limit = waits_.limit();
  return WithRetryDelay(
      absl::ResourceExhaustedError(absl::StrCat(
          "The server has ", waits_.used(), " of ", limit,
          " requests (max_queued) waiting for models",
          up_to < limit ? absl::StrCat(", and the last ", limit - up_to, " are for other callers")
                        : "",
          ".")),
      kUsualRetryDelay);
}

absl::StatusOr<std::shared_ptr<ModelPrograms::Wait>> ModelPrograms::Make(
    const std::shared_ptr<const Model>& model, const onnx::InputBindings& bindings,
    const std::shared_ptr<CallerAccount>& caller, absl::Time deadline, Done done) {
  return Await(
      Key(Work::kProgram, model->graph.get(), onnx::KeyOf(bindings)), LimitedProgram::Of(*model),
      [model, bindings](const std::stop_token& abandoned) -> Made {
        return model->graph->ProgramFor(bindings, abandoned);
      },
      "its program is being made", caller, deadline,
      [done = std::move(done)](const Made& made) {
        done(made.ok() ? absl::StatusOr<Program>(
                             std::static_pointer_cast<const onnx::ModelProgram>(*made))
                       : made.status());
      });
}

absl::StatusOr<std::shared_ptr<ModelPrograms::Wait>> ModelPrograms::Explain(
    const std::shared_ptr<const Model>& model, const onnx::InputBindings& bindings,
    const std::shared_ptr<CallerAccount>& caller, absl::Time deadline, Explained done) {
  return Await(
      Key(Work::kExplanation, model->graph.get(), onnx::KeyOf(bindings)),
      LimitedProgram::Of(*model),
      [model, bindings](const std::stop_token& abandoned) -> Made {
        ASSIGN_OR_RETURN(onnx::Explanation explained, model->graph->Explain(bindings, abandoned));
        return std::make_shared<const onnx::Explanation>(std::move(explained));
      },
      "it is being explained", caller, deadline,
      [done = std::move(done)](const Made& made) {
        done(made.ok() ? absl::StatusOr<std::shared_ptr<const onnx::Explanation>>(
                             std::static_pointer_cast<const onnx::Explanation>(*made))
                       : made.status());
      });
}

absl::StatusOr<std::shared_ptr<ModelPrograms::Wait>> ModelPrograms::Read(
    const void* file, std::string name, ReadModel read,
    const std::shared_ptr<CallerAccount>& caller, absl::Time deadline, ReadDone done) {
  return Await(
      Key(Work::kModel, file, ""), {.model = std::move(name)},
      [read = std::move(read)](const std::stop_token& abandoned) -> Made {
        return read(abandoned);
      },
      "its model is being read", caller, deadline,
      [done = std::move(done)](const Made& made) {
        done(made.ok() ? absl::StatusOr<std::shared_ptr<const Model>>(
                             std::static_pointer_cast<const Model>(*made))
                       : made.status());
      });
}

absl::StatusOr<std::shared_ptr<ModelPrograms::Wait>> ModelPrograms::Await(
    Key key, LimitedProgram of, DoWork work, absl::string_view what,
    const std::shared_ptr<CallerAccount>& caller, absl::Time deadline,
    std::function<void(const Made&)> done) {
  auto wait = std::make_shared<Wait>();
  wait->caller = caller;
  bool starts = false;
  const uint64_t up_to = waits_.LimitFor(caller->model_waits, 1, executor_.callers().several());
  if (!waits_.TryTake(caller->model_waits, 1, up_to)) return TooManyWait(up_to);
  {
    const absl::MutexLock lock(&mutex_);
    std::shared_ptr<Making>& making = makings_[key];
    if (making == nullptr) {
      making = std::make_shared<Making>(Making{
          .key = std::move(key), .of = std::move(of), .work = std::move(work), .caller = caller});
      making->place = queue_.Push(caller.get(), /*priority=*/0, /*cost=*/1, making);
      starts = making_ < max_making_;
      if (starts) ++making_;
    }
    wait->done = std::move(done);
    wait->making = making;
    wait->position = making->waits.insert(making->waits.end(), wait);
    // The timer may call back at once, and then waits for the lock.
    wait->deadline = executor_.timer().Add(
        deadline, [self = weak_from_this(), weak = std::weak_ptr(wait), what] {
          const auto programs = self.lock();
          const auto late = weak.lock();
          if (programs == nullptr || late == nullptr) return;
          programs->Cancel(late, absl::DeadlineExceededError(
                                     absl::StrCat("The execution's time is over: ", what, ".")));
        });
  }
  if (starts) executor_.PostLongSteps([self = shared_from_this()] { return self->MakeNext(); });
  return wait;
}

void ModelPrograms::Cancel(const std::shared_ptr<Wait>& wait, const absl::Status& why) {
  std::function<void(const Made&)> done;
  std::shared_ptr<Making> abandoned;
  {
    const absl::MutexLock lock(&mutex_);
    if (wait->done == nullptr) return;
    done = std::exchange(wait->done, nullptr);
    waits_.Return(wait->caller->model_waits, 1);
    const std::shared_ptr<Making> making = std::move(wait->making);
    making->waits.erase(wait->position);
    if (making->waits.empty()) {
      if (making->has_begun) {
        abandoned = making;
      } else {
        queue_.Remove(making->place);
      }
      makings_.erase(making->key);  // those that come later do not join it
    }
  }
  if (abandoned != nullptr) abandoned->abandoned.request_stop();
  executor_.timer().Remove(wait->deadline);
  done(why);
}

bool ModelPrograms::MakeNext() {
  std::shared_ptr<Making> making;
  {
    const absl::MutexLock lock(&mutex_);
    auto next = queue_.Take([](const CallerAccount*, const auto&) { return true; });
    if (!next.has_value()) {
      --making_;
      return false;
    }
    making = *std::move(next);
    making->has_begun = true;
  }
  const Made made = executor_.compile_limit().Run(making->of, making->abandoned, making->work);
  std::list<std::shared_ptr<Wait>> waits;
  std::list<std::function<void(const Made&)>> done;
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = makings_.find(making->key);
    if (found != makings_.end() && found->second == making) makings_.erase(found);
    waits.swap(making->waits);
    for (const std::shared_ptr<Wait>& wait : waits) {
      waits_.Return(wait->caller->model_waits, 1);
      done.push_back(std::exchange(wait->done, nullptr));
      wait->making = nullptr;
    }
  }
  for (const std::shared_ptr<Wait>& wait : waits) executor_.timer().Remove(wait->deadline);
  for (const auto& call : done) call(made);
  return true;
}

void PendingWork::Add(ModelPrograms& programs, const std::shared_ptr<ModelPrograms::Wait>& wait) {
  absl::Status cancelled;
  {
    const absl::MutexLock lock(&mutex_);
    waits_.push_back(wait);
    cancelled = cancelled_;
  }
  if (!cancelled.ok()) programs.Cancel(wait, cancelled);
}

void PendingWork::Cancel(ModelPrograms& programs, const absl::Status& why) {
  std::vector<std::shared_ptr<ModelPrograms::Wait>> waits;
  {
    const absl::MutexLock lock(&mutex_);
    cancelled_ = why;
    waits = waits_;
  }
  stop_.request_stop();
  for (const auto& wait : waits) programs.Cancel(wait, why);  // those that have ended stay so
}

}  // namespace opmill
