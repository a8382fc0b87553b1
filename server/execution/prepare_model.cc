#include "server/execution/prepare_model.h"

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/steady_time.h"
#include "server/models/graph_program.h"
#include "server/models/warm_up.h"
#include "server/status/retry_delay.h"

namespace opmill {
namespace {

// How long a warm-up waits for room that requests have.
constexpr absl::Duration kPatience = absl::Minutes(1);

bool HasOneSize(const Model& model) {
  return absl::c_none_of(model.graph->inputs(), [](const auto& input) { return input.is_form; }) &&
         absl::c_none_of(model.inputs, [](const ModelTensor& tensor) {
           return absl::c_linear_search(tensor.shape, kAnySize);
         });
}

absl::Status CompileOnlySize(Executor& executor, const std::shared_ptr<const Model>& model) {
  onnx::InputBindings bindings;
  for (const ModelTensor& tensor : model->inputs) bindings.sizes[tensor.name] = tensor.shape;
  ASSIGN_OR_RETURN(const auto made, executor.compile_limit().ProgramFor(LimitedProgram::Of(*model),
                                                                        *model->graph, bindings));
  const RequestedModel requested = {model, made};
  absl::Notification is_compiled;
  absl::Status status;
  RETURN_IF_ERROR(executor.Compile({.program = made->program,
                                    .limited = LimitedProgram::Of(&requested),
                                    .cancelled = executor.compile_limit().background()},
                                   [&](const auto& compiled) {
                                     status = compiled.status();
                                     is_compiled.Notify();
                                   }));
  is_compiled.WaitForNotification();
  return status;
}

InputSource SourceOf(WarmUp::Elements elements) {
  return {.read = [elements = std::move(elements)](uint64_t offset, absl::Span<std::byte> to) {
    elements(offset, to);
    return absl::OkStatus();
  }};
}

// What computes the warm-up, without what it calls.
absl::StatusOr<ExecutionRequest> RequestOf(const Executor& executor, const Model& model,
                                           const WarmUp& warm_up) {
  ExecutionRequest request = {.origin = {.rpc = "model_warmup"}};
  if (model.graph == nullptr) {
    ASSIGN_OR_RETURN(request.op, DescribeRequest(model, warm_up.inputs, {}));
    for (const auto& elements : warm_up.elements) request.sources.push_back(SourceOf(elements));
    return request;
  }
  ASSIGN_OR_RETURN(
      const onnx::InputBindings bindings,
      BindingsOf(
          model, warm_up.inputs, [&](size_t index) { return model.inputs[index].name; },
          [&](size_t index, absl::Span<std::byte> to) {
            warm_up.elements[index](0, to);
            return absl::OkStatus();
          }));
  ASSIGN_OR_RETURN(const auto program, executor.compile_limit().ProgramFor(
                                           LimitedProgram::Of(model), *model.graph, bindings));
  for (const size_t input : program->inputs) {
    request.sources.push_back(SourceOf(warm_up.elements[input]));
  }
  request.program = {program, &program->program};
  // In the log it has the name of the model. It does not count in its statistics, as in Triton.
  const auto shown = std::make_shared<Model>(model);
  shown->statistics = std::make_shared<ModelStatistics>();
  request.model = std::make_shared<const RequestedModel>(RequestedModel{shown, program});
  return request;
}

absl::StatusOr<std::shared_ptr<Execution>> BeginPatiently(Executor& executor,
                                                          ExecutionRequest& request) {
  const absl::Time last = SteadyNow() + kPatience;
  for (;;) {
    absl::StatusOr<std::shared_ptr<Execution>> begun = executor.Begin(request);
    const bool may_have_room = absl::IsResourceExhausted(begun.status()) &&
                               IsRetryable(begun.status()) && SteadyNow() < last;
    if (!may_have_room) return begun;
    absl::SleepFor(*RetryDelayOf(begun.status()));
  }
}

absl::Status Run(Executor& executor, ExecutionRequest request) {
  absl::Notification has_ended;
  request.on_ready = [&](const std::shared_ptr<Execution>&) { has_ended.Notify(); };
  ASSIGN_OR_RETURN(const std::shared_ptr<Execution> execution, BeginPatiently(executor, request));
  executor.ReceiveNone(execution);
  const std::stop_callback stops(executor.compile_limit().background(),
                                 [&] { executor.Cancel(execution, CompileLimit::ServerStops()); });
  has_ended.WaitForNotification();
  absl::Status status = execution->status();
  executor.Finish(execution);
  return status;
}

absl::Status Compute(Executor& executor, const Model& model, const WarmUp& warm_up) {
  ASSIGN_OR_RETURN(const ExecutionRequest request, RequestOf(executor, model, warm_up));
  for (uint32_t run = 0; run < warm_up.count; ++run) RETURN_IF_ERROR(Run(executor, request));
  return absl::OkStatus();
}

}  // namespace

absl::Status PrepareModel(Executor& executor, const std::shared_ptr<const Model>& prepared) {
  const Model& model = *prepared;
  if (model.graph != nullptr && HasOneSize(model)) {
    absl::Status compiled = CompileOnlySize(executor, prepared);
    if (executor.compile_limit().background().stop_requested()) return CompileLimit::ServerStops();
    if (TookTooLong(compiled)) return compiled;
  }
  for (size_t i = 0; i < static_cast<size_t>(model.warm_ups.size()); ++i) {
    ASSIGN_OR_RETURN(const WarmUp warm_up, ReadWarmUp(model, i));
    const absl::Status computed = Compute(executor, model, warm_up);
    if (computed.ok()) continue;
    const std::string field = WarmUpField(i);
    return WithField(absl::Status(computed.code(),
                                  absl::StrCat(field, " (\"",
                                               Excerpt(model.warm_ups[static_cast<int>(i)].name()),
                                               "\") fails: ", computed.message())),
                     field);
  }
  return absl::OkStatus();
}

}  // namespace opmill
