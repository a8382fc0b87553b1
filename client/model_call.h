// A call of a model of the server, from inputs by their names.
#ifndef OPMILL_CLIENT_MODEL_CALL_H_
#define OPMILL_CLIENT_MODEL_CALL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/execution.h"
#include "opmill/v1/model.pb.h"
#include "opmill/v1/tensor.pb.h"

namespace opmill {

struct NamedInput {
  std::string name;
  v1::TensorDesc desc;
  InputBytes bytes;
};

struct ModelCall {
  v1::ModelDesc desc;
  std::vector<InputBytes> inputs;  // to be sent, in the order of `desc`
};

// InvalidArgument unless these are all inputs of the model, each once.
absl::Status CheckInputNames(const v1::ModelInfo& model, const std::vector<std::string>& names);

// `model` is from ListModels. Checks names, types and sizes. Inputs with strides are packed into
// copies. One element of one dimension is also an input without dimensions.
absl::StatusOr<ModelCall> DescribeCall(const v1::ModelInfo& model, const std::string& version,
                                       std::vector<NamedInput> inputs);

std::string TypeName(const v1::ModelTensor& tensor);  // "float32", "bool"
std::string ToText(const v1::ModelTensor& tensor);    // "x float32[-1,6]"

}  // namespace opmill

#endif  // OPMILL_CLIENT_MODEL_CALL_H_
