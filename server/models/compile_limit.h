// How long work for the programs of models may take.
#ifndef OPMILL_SERVER_MODELS_COMPILE_LIMIT_H_
#define OPMILL_SERVER_MODELS_COMPILE_LIMIT_H_

#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kernels/onnx/model.h"
#include "server/host/deadline_timer.h"
#include "server/models/requested_model.h"

namespace opmill {

// A program of a model that has a limit.
struct LimitedProgram {
  std::string model;     // as text, for sentences and the log; empty: there is no limit
  absl::Duration spent;  // on it before

  static LimitedProgram Of(const Model& model);
  // Compiles what is made. No limit for an operator, or if `requested` is null.
  static LimitedProgram Of(const RequestedModel* requested);
};

// Whether it is the error of work that CompileLimit has stopped at the limit.
bool TookTooLong(const absl::Status& status);

// The time that a model's file may take to be read, and that one program of it may take to be made
// and compiled, without waits. Thread-safe, if `timer` outlives it.
class CompileLimit {
 public:
  // Infinite: no limit.
  CompileLimit(DeadlineTimer& timer, absl::Duration most) : timer_(timer), most_(most) {}

  absl::Duration most() const { return most_; }
  // The error of work for this program that was stopped at the limit.
  absl::Status TooLong(const LimitedProgram& of) const;

  // The result of `work`, a function of a std::stop_token that returns a StatusOr. `abandoned` is
  // stopped at the limit; then the result is ResourceExhausted. Logs work that was stopped, also by
  // others.
  template <typename Work>
  auto Run(const LimitedProgram& of, const std::stop_source& abandoned, const Work& work) const
      -> decltype(work(abandoned.get_token())) {
    Watch watch(*this, of, abandoned);
    auto result = work(abandoned.get_token());
    if (absl::IsCancelled(result.status())) return watch.Stopped(result.status());
    return result;
  }
  // The same for work that no caller waits for, such as loads of models: Unavailable after
  // StopBackground.
  template <typename Work>
  auto Run(const LimitedProgram& of, const Work& work) const -> decltype(work(std::stop_token())) {
    std::stop_source abandoned;
    const std::stop_callback stops(background(), [&] { abandoned.request_stop(); });
    auto result = Run(of, abandoned, work);
    if (absl::IsCancelled(result.status())) return ServerStops();
    return result;
  }
  // The program for these sizes, made as such work.
  absl::StatusOr<std::shared_ptr<const onnx::ModelProgram>> ProgramFor(
      const LimitedProgram& of, const onnx::Model& graph,
      const onnx::InputBindings& bindings) const;
  // Stops such work, also what is yet to come, because a server that stops has no use for it.
  void StopBackground() { background_.request_stop(); }
  // Stops then.
  std::stop_token background() const { return background_.get_token(); }
  static absl::Status ServerStops();

 private:
  class Watch {
   public:
    Watch(const CompileLimit& limit, const LimitedProgram& of, std::stop_source abandoned);
    ~Watch() { limit_.timer_.Remove(end_); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // Why the work was stopped, which has ended with `cancelled`.
    absl::Status Stopped(const absl::Status& cancelled) const;

   private:
    const CompileLimit& limit_;
    const LimitedProgram& of_;
    const absl::Time begun_;
    const std::shared_ptr<std::stop_source> late_ = std::make_shared<std::stop_source>();
    DeadlineTimer::Handle end_;
  };

  DeadlineTimer& timer_;
  const absl::Duration most_;
  std::stop_source background_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_COMPILE_LIMIT_H_
