// What a request asks for: an operator that it describes, or a model with its inputs.
#ifndef OPMILL_SERVER_API_PROGRAM_REQUEST_H_
#define OPMILL_SERVER_API_PROGRAM_REQUEST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"
#include "kernels/onnx/model.h"
#include "opmill/v1/model.pb.h"
#include "proto/payload.h"
#include "server/api/model_finder.h"
#include "server/api/request_decoder.h"
#include "server/execution/execution.h"
#include "server/execution/executor.h"
#include "server/execution/model_programs.h"

namespace opmill {

// The operator of a request without a model. Request is ExecuteRequest, CompileOperatorRequest or
// BeginExecution, here and below.
template <typename Request>
absl::StatusOr<OperatorDesc> DecodeOperator(const Request& request,
                                            const std::optional<OwnedPayload>& file) {
  if (!file.has_value()) return DecodeRequest(request);
  return InvalidField("model_file", "model_file is given, but the request has no model.");
}

// One request for a model, from its message to its program. Not thread-safe, except for Cancel:
// Decode, then Make if it is necessary.
class ProgramRequest {
 public:
  using Done = ModelFinder::Done;

  // `path`: of the message that is decoded, within the request.
  explicit ProgramRequest(const ModelSources& sources, absl::string_view path = "")
      : finder_(sources, path) {}

  // Sets the program of `to`, and its model as soon as it is known. If it succeeds without a
  // program, the model's file has yet to be read, or its program for these sizes to be made: Make
  // follows. Errors name fields from the root of the request.
  template <typename Request>
  absl::Status DecodeModel(const Request& request, std::optional<OwnedPayload> file,
                           ExecutionRequest& to) {
    if (request.has_operator_() || request.has_feature_level()) {
      return finder_.OfMessage(InvalidField(
          "model", "model is given beside operator or feature_level; a model has neither."));
    }
    return DecodeModel(request.model(), std::move(file), to);
  }
  absl::Status DecodeModel(const v1::ModelDesc& desc, std::optional<OwnedPayload> file,
                           ExecutionRequest& to);
  // The same for a request that may have an operator: it sets that.
  template <typename Request>
  absl::Status Decode(const Request& request, std::optional<OwnedPayload> file,
                      ExecutionRequest& to) {
    if (request.has_model()) return DecodeModel(request, std::move(file), to);
    ASSIGN_OR_RETURN(OperatorDesc desc, DecodeOperator(request, file));
    to.op = std::move(desc);
    return absl::OkStatus();
  }

  // Does what is missing on workers, then calls `done`, once, possibly on one of them; with an
  // error if there is no program, at the deadline of `to`, or after Cancel. `to` must live until
  // then.
  void Make(Executor& executor, ExecutionRequest& to, const Done& done);
  // After that: what becomes of the nodes of its ONNX model. `to` must live until `done` is called.
  void Explain(Executor& executor, ExecutionRequest& to, const ModelPrograms::Explained& done);
  void Cancel(const absl::Status& why) { finder_.Cancel(why); }
  // That of Cancel; OK before.
  absl::Status cancelled() const { return finder_.cancelled(); }
  std::stop_token token() const { return finder_.token(); }  // stops at Cancel

 private:
  absl::Status DecodeInputs(const v1::ModelDesc& desc, ExecutionRequest& to);
  // Errors name fields of the model.
  absl::Status BindInputs(const v1::ModelDesc& desc, ExecutionRequest& to);
  void SetProgram(ModelPrograms::Program program, ExecutionRequest& to);
  void MakeProgram(Executor& executor, ExecutionRequest& to, const Done& done);

  ModelFinder finder_;
  v1::ModelDesc desc_;  // of a file that is read
  std::shared_ptr<RequestedModel> requested_;
  onnx::InputBindings bindings_;   // of a graph
  std::vector<size_t> positions_;  // in the request, of the model's inputs
};

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

#endif  // OPMILL_SERVER_API_PROGRAM_REQUEST_H_
