// The names of data types in the Open Inference Protocol, and in configurations of models.
#ifndef OPMILL_SERVER_MODELS_DATA_TYPES_H_
#define OPMILL_SERVER_MODELS_DATA_TYPES_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/model_config.pb.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {

// Of tensors of ONNX models. Operators take UINT8 in its place.
inline constexpr absl::string_view kBoolName = "BOOL";

// "FP32", "FP16", "INT64", ...; "" for a type that no operator supports.
absl::string_view NameOf(DataType type);
// InvalidArgument for names of other types, such as BOOL and BYTES.
absl::StatusOr<DataType> DataTypeFrom(absl::string_view name, absl::string_view field);

inference::DataType ConfigTypeOf(DataType type);
absl::StatusOr<DataType> DecodeDataType(inference::DataType type, absl::string_view field);

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_DATA_TYPES_H_
