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
  std::function<Made()> work;
  std::shared_ptr<CallerAccount> caller;  // the first one that needs it
  std::list<std::shared_ptr<Wait>> waits;
  bool has_begun = false;
  Queue::Place place;  // until it has begun
};

ModelPrograms::ModelPrograms(Executor& executor, uint64_t max_waits)
    : executor_(executor), waits_(max_waits), max_making_(std::max(1u, executor.workers() - 1)) {}

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
    const std::shared_ptr<const onnx::Model>& model, const onnx::InputBindings& bindings,
    const std::shared_ptr<CallerAccount>& caller, absl::Time deadline, Done done) {
  return Await(
      Key(Work::kProgram, model.get(), onnx::KeyOf(bindings)),
      [model, bindings]() -> Made { return model->ProgramFor(bindings); },
      "its program is being made", caller, deadline,
      [done = std::move(done)](const Made& made) {
        done(made.ok() ? absl::StatusOr<Program>(
                             std::static_pointer_cast<const onnx::ModelProgram>(*made))
                       : made.status());
      });
}

absl::StatusOr<std::shared_ptr<ModelPrograms::Wait>> ModelPrograms::Explain(
    const std::shared_ptr<const onnx::Model>& model, const onnx::InputBindings& bindings,
    const std::shared_ptr<CallerAccount>& caller, absl::Time deadline, Explained done) {
  return Await(
      Key(Work::kExplanation, model.get(), onnx::KeyOf(bindings)),
      [model, bindings]() -> Made {
        ASSIGN_OR_RETURN(onnx::Explanation explained, model->Explain(bindings));
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
    const void* file, ReadModel read, const std::shared_ptr<CallerAccount>& caller,
    absl::Time deadline, ReadDone done) {
  return Await(
      Key(Work::kModel, file, ""), [read = std::move(read)]() -> Made { return read(); },
      "its model is being read", caller, deadline,
      [done = std::move(done)](const Made& made) {
        done(made.ok() ? absl::StatusOr<std::shared_ptr<const Model>>(
                             std::static_pointer_cast<const Model>(*made))
                       : made.status());
      });
}

absl::StatusOr<std::shared_ptr<ModelPrograms::Wait>> ModelPrograms::Await(
    Key key, std::function<Made()> work, absl::string_view what,
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
      making = std::make_shared<Making>(
          Making{.key = std::move(key), .work = std::move(work), .caller = caller});
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
  if (starts) executor_.PostSteps([self = shared_from_this()] { return self->MakeNext(); });
  return wait;
}

void ModelPrograms::Cancel(const std::shared_ptr<Wait>& wait, const absl::Status& why) {
  std::function<void(const Made&)> done;
  {
    const absl::MutexLock lock(&mutex_);
    if (wait->done == nullptr) return;
    done = std::exchange(wait->done, nullptr);
    waits_.Return(wait->caller->model_waits, 1);
    const std::shared_ptr<Making> making = std::move(wait->making);
    making->waits.erase(wait->position);
    if (making->waits.empty() && !making->has_begun) {
      queue_.Remove(making->place);
      makings_.erase(making->key);
    }
  }
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
  const Made made = making->work();
  std::list<std::shared_ptr<Wait>> waits;
  std::list<std::function<void(const Made&)>> done;
  {
    const absl::MutexLock lock(&mutex_);
    makings_.erase(making->key);
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
  for (const auto& wait : waits) programs.Cancel(wait, why);  // those that have ended stay so
}

}  // namespace opmill
