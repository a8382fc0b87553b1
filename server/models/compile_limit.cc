#include "server/models/compile_limit.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/status_payload.h"
#include "kernels/base/steady_time.h"
#include "server/observe/log.h"

namespace opmill {
namespace {

constexpr char kTooLong[] = "opmill.dev/too_long";

}  // namespace

bool TookTooLong(const absl::Status& status) { return PayloadOf(status, kTooLong).has_value(); }

LimitedProgram LimitedProgram::Of(const Model& model) {
  return {.model = model.version.empty() ? model.name
                                         : absl::StrCat(model.name, " version ", model.version)};
}

LimitedProgram LimitedProgram::Of(const RequestedModel* requested) {
  if (requested == nullptr || requested->graph == nullptr) return {};
  LimitedProgram limited = Of(*requested->model);
  limited.spent = requested->graph->duration;
  return limited;
}

CompileLimit::Watch::Watch(const CompileLimit& limit, const LimitedProgram& of,
                           std::stop_source abandoned)
    : limit_(limit), of_(of), begun_(SteadyNow()), end_(DeadlineTimer::kNone) {
  if (of.model.empty() || limit.most_ == absl::InfiniteDuration()) return;
  end_ = limit.timer_.Add(begun_ + limit.most_ - of.spent,
                          [late = late_, work = std::move(abandoned)]() mutable {
                            late->request_stop();
                            work.request_stop();
                          });
}

absl::Status CompileLimit::Watch::Stopped(const absl::Status& cancelled) const {
  const bool is_late = late_->stop_requested();
  LogLine(is_late ? LogLevel::kWarning : LogLevel::kInfo, "compile_stopped")
      .Add("model", of_.model)
      .Add("after", of_.spent + (SteadyNow() - begun_))
      .Add("reason", is_late                                ? "max_model_compile_time"
                     : limit_.background().stop_requested() ? "the server stops"
                                                            : "no caller waits for it");
  return is_late ? limit_.TooLong(of_) : cancelled;
}

absl::StatusOr<std::shared_ptr<const onnx::ModelProgram>> CompileLimit::ProgramFor(
    const LimitedProgram& of, const onnx::Model& graph, const onnx::InputBindings& bindings) const {
  return Run(
      of, [&](const std::stop_token& abandoned) { return graph.ProgramFor(bindings, abandoned); });
}

absl::Status CompileLimit::ServerStops() {
  return absl::UnavailableError("The server is shutting down.");
}

absl::Status CompileLimit::TooLong(const LimitedProgram& of) const {
  const std::string what =
      of.model.empty() ? "the operator" : absl::StrCat("the model ", Excerpt(of.model));
  return WithPayload(absl::ResourceExhaustedError(
                         absl::StrCat("Compiling ", what, " takes more than ",
                                      absl::FormatDuration(most_), " (max_model_compile_time).")),
                     kTooLong, "");
}

}  // namespace opmill
