// Converts protos to the engine's descriptors, and back. No other code reads the protos of a
// request.
#ifndef OPMILL_SERVER_API_REQUEST_DECODER_H_
#define OPMILL_SERVER_API_REQUEST_DECODER_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/descriptor/feature_levels.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/descriptor/tensor.h"
#include "opmill/v1/operator.pb.h"
#include "opmill/v1/tensor.pb.h"

namespace opmill {

// Decodes and validates the operator of a message with the fields `operator` and `feature_level`,
// and fills in omitted outputs. Errors name fields from the root of that message.
absl::StatusOr<OperatorDesc> DecodeOperator(const v1::OperatorDesc& desc,
                                            std::optional<v1::FeatureLevel> feature_level);

// Of the operator of a request: ExecuteRequest, CompileOperatorRequest or BeginExecution.
template <typename Request>
absl::StatusOr<OperatorDesc> DecodeRequest(const Request& request) {
  return DecodeOperator(request.operator_(), request.has_feature_level()
                                                 ? std::optional(request.feature_level())
                                                 : std::nullopt);
}

// Not validated, except that it has a data type. `field` is its path.
absl::StatusOr<TensorDesc> DecodeTensor(const v1::TensorDesc& desc, absl::string_view field);

void EncodeTensor(const TensorDesc& desc, v1::TensorDesc& to);
v1::DataType EncodeDataType(DataType type);
v1::FeatureLevel EncodeFeatureLevel(FeatureLevel level);

}  // namespace opmill

#endif  // OPMILL_SERVER_API_REQUEST_DECODER_H_
