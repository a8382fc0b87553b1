// Models: the names by which callers choose operators with fixed attributes and ONNX files.
#ifndef OPMILL_SERVER_MODELS_MODEL_H_
#define OPMILL_SERVER_MODELS_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/model_config.pb.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/onnx/model.h"
#include "server/models/batch_options.h"
#include "server/models/model_statistics.h"
#include "server/models/parameters.h"

namespace opmill {

inline constexpr int64_t kAnySize = -1;

struct ModelTensor {
  std::string name;
  DataType data_type = DataType::kUnknown;
  std::vector<int64_t> shape;  // may have kAnySize
  bool is_bool = false;        // UINT8 that is 0 or 1
};

// The name of its type in the Open Inference Protocol, and its type in configurations.
absl::string_view TypeNameOf(const ModelTensor& tensor);
inference::DataType ConfigTypeOf(const ModelTensor& tensor);

// Immutable except for its statistics.
struct Model {
  std::string name;
  std::string version = "1";
  // An operator, or the graph of a file: one of both is null.
  const OperatorSchema* schema = nullptr;
  std::shared_ptr<const onnx::Model> graph;
  std::string files;              // of a graph: what differs if they change
  std::string config_text;        // of a graph: its file
  inference::ModelConfig config;  // of a graph: complete
  // Of a model of the repository: where input_data_file of model_warmup lies; empty if its files
  // come from a request.
  std::string warm_up_folder;
  google::protobuf::RepeatedPtrField<inference::ModelWarmup> warm_ups;
  uint32_t max_batch_size = 0;  // of requests of a graph, along their first dimension; 0: any
  std::optional<BatchOptions> batching;  // null: requests are not joined
  Parameters parameters;  // set by the model; requests may set others if it is built in
  // A built-in model takes every type and rank of its operator; its tensors are only examples, for
  // clients that need some. Other models take what their tensors say.
  bool is_built_in = true;
  std::vector<ModelTensor> inputs;
  std::vector<ModelTensor> outputs;
  std::shared_ptr<ModelStatistics> statistics = std::make_shared<ModelStatistics>();
};

// One for each operator, or for each function of an operator: "argmax", "reduce_sum", ...
std::vector<std::shared_ptr<const Model>> BuiltInModels();

std::shared_ptr<Model> MakeGraphModel(const std::string& name, const std::string& version,
                                      std::shared_ptr<const onnx::Model> graph);

bool TakesSizes(const ModelTensor& tensor, const std::vector<uint32_t>& sizes);
// The number of tensors if none has the name.
size_t IndexOf(const std::vector<ModelTensor>& tensors, absl::string_view name);
std::string NamesOf(const std::vector<ModelTensor>& tensors);  // "x, y"

// Whether the first dimension of an input is within max_batch_size. `sizes_path` is that of its
// sizes in the request.
absl::Status CheckBatch(const Model& model, const TensorDesc& input, const std::string& sizes_path);

// Whether the model, which is not built in, takes the tensor as its input `index`, whose field in
// the request is `path`.
absl::Status CheckInput(const Model& model, size_t index, const TensorDesc& input,
                        const std::string& path);

// The descriptor of a request with these inputs, in the order of the model, and parameters.
absl::StatusOr<OperatorDesc> DescribeRequest(const Model& model, std::vector<TensorDesc> inputs,
                                             const Parameters& parameters);

// Of the field that an error of DescribeRequest names: the input, one of the first `count` of the
// operator, and the rest of the path, such as ".sizes[1]". Null if it is the field of no input.
struct InputField {
  size_t index = 0;
  std::string rest;
};
std::optional<InputField> InputFieldOf(const OperatorSchema& schema, size_t count,
                                       const absl::Status& status);

inline constexpr absl::string_view kPlatform = "opmill";

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_MODEL_H_
