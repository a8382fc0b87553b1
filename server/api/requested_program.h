// What a request asks for: an operator that it describes, or a model that it names.
#ifndef OPMILL_SERVER_API_REQUESTED_PROGRAM_H_
#define OPMILL_SERVER_API_REQUESTED_PROGRAM_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"
#include "kernels/program/program.h"
#include "server/api/model_messages.h"
#include "server/api/request_decoder.h"
#include "server/execution/execution.h"
#include "server/execution/tensor_buffers.h"

namespace opmill {

// Sets the operator or program of `to`, and its model if the request names one, even if it is
// refused then. Request is ExecuteRequest, CompileOperatorRequest or BeginExecution.
template <typename Request>
absl::Status DecodeProgram(const Request& request, const ModelTable& models, ExecutionRequest& to) {
  if (!request.has_model()) {
    ASSIGN_OR_RETURN(OperatorDesc desc, DecodeRequest(request));
    to.op = std::move(desc);
    return absl::OkStatus();
  }
  if (request.has_operator_() || request.has_feature_level()) {
    return InvalidField("model",
                        "model is given beside operator or feature_level; a model has neither.");
  }
  const auto model = std::make_shared<RequestedModel>();
  absl::StatusOr<std::shared_ptr<const Program>> program =
      DecodeModel(request.model(), models, *model);
  if (model->model != nullptr) to.model = model;
  if (!program.ok()) return program.status();
  to.program = *std::move(program);
  return absl::OkStatus();
}

// In the order of the request, which is that of the program for an operator.
inline const std::vector<TensorDesc>& InputsOf(const ExecutionRequest& request) {
  return request.model == nullptr ? request.op->inputs : request.model->inputs;
}

// The input of the program that an input of the request is; RequestedModel::kInProgram for a value.
inline uint32_t ProgramInputOf(const ExecutionRequest& request, uint32_t input) {
  return request.model == nullptr ? input : request.model->program_inputs[input];
}

// In the statistics of the model, if it is not null.
inline void CountFailure(const RequestedModel* model, absl::Time arrived) {
  if (model != nullptr) model->model->statistics->AddFailure(SteadyNow() - arrived);
}
inline void CountFailure(const ExecutionRequest& request) {
  CountFailure(request.model.get(), request.origin.arrived);
}

}  // namespace opmill

#endif  // OPMILL_SERVER_API_REQUESTED_PROGRAM_H_
