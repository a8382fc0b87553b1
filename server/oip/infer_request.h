// A ModelInferRequest, from its bytes to an execution and its response.
#ifndef OPMILL_SERVER_OIP_INFER_REQUEST_H_
#define OPMILL_SERVER_OIP_INFER_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "inference/grpc_service.pb.h"
#include "proto/payload.h"
#include "server/execution/executor.h"
#include "server/oip/model_table.h"

namespace opmill::oip {

// Not thread-safe. The calls below follow each other: Decode, Executor::Begin, SendInputs, Encode.
class InferRequest {
 public:
  // Sets the descriptor of `begin`, if it is valid, and advances its deadline if the request says
  // so. The model and the id are set as far as they are known, even if the request is refused.
  absl::Status Decode(grpc::ByteBuffer& message, const ModelTable& models, ExecutionRequest& begin);

  // Null if the request names none.
  const std::shared_ptr<const Model>& model() const { return model_; }
  const std::string& id() const { return id_; }

  // Passes the tensors to the execution, and forgets the message.
  void SendInputs(Executor& executor, const std::shared_ptr<Execution>& execution);

  // Encodes the results, as a ModelInferResponse or, if `outer_field` is not 0, as that field of
  // another message. Counts the inference. False if the execution has ended.
  bool Encode(const std::shared_ptr<Execution>& execution, uint32_t outer_field,
              grpc::ByteBuffer& message) const;

  // Counts an inference that has failed.
  void CountFailure(absl::Time arrived) const;

 private:
  // The bytes of an input of the operator.
  struct Source {
    size_t position = 0;                             // in the request's inputs
    const Payload* raw = nullptr;                    // null: the contents are typed
    const std::vector<Payload>* contents = nullptr;  // serialized InferTensorContents
  };

  absl::Status DecodeHeader(const inference::ModelInferRequest& header, ExecutionRequest& begin);
  absl::Status DecodeInputs(const inference::ModelInferRequest& header,
                            std::vector<TensorDesc>& inputs);
  absl::Status FindSource(size_t position, Source& source) const;
  absl::Status CheckSources(const OperatorDesc& desc) const;
  absl::Status DecodeOutputs(const inference::ModelInferRequest& header, const OperatorDesc& desc);

  std::shared_ptr<const Model> model_;
  std::string id_;
  std::optional<SplitMessage> message_;
  std::vector<Source> sources_;  // in the order of the operator's inputs
  std::vector<size_t> outputs_;  // those that the caller wants, in the caller's order
};

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_INFER_REQUEST_H_
