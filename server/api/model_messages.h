// Converts messages about models.
#ifndef OPMILL_SERVER_API_MODEL_MESSAGES_H_
#define OPMILL_SERVER_API_MODEL_MESSAGES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "opmill/v1/model.pb.h"
#include "opmill/v1/service.pb.h"
#include "server/models/inline_models.h"
#include "server/models/model_table.h"
#include "server/models/requested_model.h"

namespace opmill {

// Of the repository. Errors name fields of ModelDesc.
absl::StatusOr<std::shared_ptr<const Model>> FindModel(const ModelTable& models,
                                                       const std::string& name,
                                                       const std::string& version);

// The version of the model and its outputs. `outputs` are those of the program, which may have
// other sizes for one without dimensions.
void EncodeOutputs(const RequestedModel& model, const std::vector<TensorDesc>& outputs,
                   v1::ExecutionStarted& to);
void EncodeOutputs(const RequestedModel& model, const std::vector<TensorDesc>& outputs,
                   v1::CompileOperatorResponse& to);

// The models of the repository, or the one with this name.
absl::Status EncodeModels(const ModelTable& models, const std::string& name,
                          v1::ListModelsResponse& to);
void EncodeModel(const Model& from, v1::ModelInfo& to);
void EncodeModelStatistics(const ModelTable& repository, const InlineModels& inline_models,
                           v1::GetStatisticsResponse& to);

}  // namespace opmill

#endif  // OPMILL_SERVER_API_MODEL_MESSAGES_H_
