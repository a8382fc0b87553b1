#include "server/execution/prepare_model.h"

#include <memory>

#include "absl/algorithm/container.h"
#include "absl/synchronization/notification.h"

namespace opmill {
namespace {

bool HasOneSize(const Model& model) {
  return absl::c_none_of(model.graph->inputs(), [](const auto& input) { return input.is_form; }) &&
         absl::c_none_of(model.inputs, [](const ModelTensor& tensor) {
           return absl::c_linear_search(tensor.shape, kAnySize);
         });
}

}  // namespace

void PrepareModel(Executor& executor, const Model& model) {
  if (model.graph == nullptr || !HasOneSize(model)) return;
  onnx::InputBindings bindings;
  for (const ModelTensor& tensor : model.inputs) bindings.sizes[tensor.name] = tensor.shape;
  const auto made = model.graph->ProgramFor(bindings);
  if (!made.ok()) return;
  absl::Notification is_compiled;
  const absl::Status posted =
      executor.Compile((*made)->program, absl::InfiniteFuture(), [] { return absl::OkStatus(); },
                       [&](const auto&) { is_compiled.Notify(); });
  if (posted.ok()) is_compiled.WaitForNotification();
}

}  // namespace opmill
