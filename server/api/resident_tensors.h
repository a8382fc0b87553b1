// Converts messages about tensors that stay on the server.
#ifndef OPMILL_SERVER_API_RESIDENT_TENSORS_H_
#define OPMILL_SERVER_API_RESIDENT_TENSORS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "opmill/v1/resident.pb.h"
#include "opmill/v1/service.pb.h"
#include "server/execution/execution.h"
#include "server/tensors/tensor_store.h"

namespace opmill {

// The fields of a request that are about resident tensors.
struct ResidentFields {
  ResidentFields() = default;
  // Request is ExecuteRequest or BeginExecution.
  template <typename Request>
  explicit ResidentFields(const Request& request)
      : inputs(request.resident_inputs()), outputs(request.resident_outputs()) {}

  google::protobuf::RepeatedPtrField<v1::ResidentInput> inputs;
  google::protobuf::RepeatedPtrField<v1::ResidentOutput> outputs;
};

// Finds the resident inputs of `to`, whose program is known, and begins the writes of its outputs.
// Errors name fields from the root of the message.
absl::Status DecodeResident(const ResidentFields& fields, TensorStore& store, ExecutionRequest& to);

// Whether the input can be the first bytes of the tensor. `path` is of the field that names it.
absl::Status CheckFits(const TensorDesc& input, const ResidentTensor& resident,
                       const std::string& path);

// Whether the server has that input of the request.
bool IsResident(const ExecutionRequest& request, size_t input);

absl::Status EncodeTensors(TensorStore& store, absl::string_view owner, const std::string& name,
                           v1::ListTensorsResponse& to);
void EncodeTotals(const TensorStore::Totals& totals, v1::ResidentStatistics& to);

}  // namespace opmill

#endif  // OPMILL_SERVER_API_RESIDENT_TENSORS_H_
