// A ModelInferRequest, from its bytes to an execution and its response.
#ifndef OPMILL_SERVER_OIP_INFER_REQUEST_H_
#define OPMILL_SERVER_OIP_INFER_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "inference/grpc_service.pb.h"
#include "kernels/onnx/model.h"
#include "proto/payload.h"
#include "server/execution/executor.h"
#include "server/execution/model_programs.h"
#include "server/models/model_table.h"
#include "server/oip/shared_parameters.h"
#include "server/shared_memory/shared_tensors.h"

namespace opmill::oip {

// Not thread-safe. The calls below follow each other: Decode, MakeProgram if it is necessary,
// Executor::Begin, SendInputs, WriteShared, Encode; but WriteShared may come before SendInputs has
// returned.
class InferRequest {
 public:
  // Sets the program of `begin`, if it is valid, and advances its deadline if the request says
  // so. The model and the id are set as far as they are known, even if the request is refused.
  // Regions of shared memory are those of the request's caller. If it succeeds without a program,
  // that of the model for these sizes has yet to be made: MakeProgram follows.
  absl::Status Decode(grpc::ByteBuffer& message, const ModelTable& models,
                      const TensorPlaces& places, ExecutionRequest& begin);

  // Sets the program of `begin`, then calls `done`, once, on any thread; with an error if there is
  // no program, at the deadline, or after CancelProgram. The request must live until this returns.
  void MakeProgram(ModelPrograms& programs, const TensorPlaces& places, Executor& executor,
                   ExecutionRequest& begin, const std::function<void(const absl::Status&)>& done);
  // Thread-safe, even before Decode.
  void CancelProgram(ModelPrograms& programs, const absl::Status& why) {
    pending_.Cancel(programs, why);
  }

  // Null if the request names none.
  const std::shared_ptr<const Model>& model() const { return model_; }
  const std::string& id() const { return id_; }

  // Passes the tensors that the message holds to the execution, and forgets the message.
  void SendInputs(Executor& executor, const std::shared_ptr<Execution>& execution);

  // Writes the outputs that belong in shared memory, if the execution has succeeded, then calls
  // `done`, possibly on another thread. If that fails, the execution has ended by then.
  void WriteShared(Executor& executor, const std::shared_ptr<Execution>& execution,
                   std::function<void()> done);

  // Encodes the results, as a ModelInferResponse or, if `outer_field` is not 0, as that field of
  // another message. Counts the inference. False if the execution has ended.
  bool Encode(const std::shared_ptr<Execution>& execution, uint32_t outer_field,
              grpc::ByteBuffer& message) const;

  // Counts an inference that has failed.
  void CountFailure() const;

 private:
  // The bytes of an input.
  struct Source {
    bool is_sent() const { return !shared.has_value() && resident == nullptr; }

    size_t position = 0;                             // in the request's inputs
    size_t raw_index = 0;                            // in raw_input_contents
    const Payload* raw = nullptr;                    // null if it is given otherwise
    const std::vector<Payload>* contents = nullptr;  // serialized InferTensorContents, or null
    std::optional<SharedTensor> shared;
    std::shared_ptr<const ResidentTensor> resident;
  };
  struct Output {
    size_t index;  // among the model's outputs
    bool is_shared;
  };

  absl::Status DecodeHeader(const inference::ModelInferRequest& header, const TensorPlaces& places,
                            ExecutionRequest& begin);
  absl::Status DecodeInputs(const inference::ModelInferRequest& header, const CallerPlaces& caller,
                            std::vector<TensorDesc>& inputs);
  absl::Status FindSource(Source& source, size_t& raw_count) const;
  absl::Status CheckSources(const std::vector<TensorDesc>& inputs) const;
  // Sets the program of `begin`.
  absl::Status DescribeOperator(std::vector<TensorDesc> inputs, const Parameters& parameters,
                                ExecutionRequest& begin) const;
  // Sets the bindings.
  absl::Status BindGraph(const std::vector<TensorDesc>& inputs, const Parameters& parameters);
  // Sets the program of `begin` to that of the graph.
  void SetProgram(std::shared_ptr<const onnx::ModelProgram> program, ExecutionRequest& begin);
  absl::Status ProgramMade(const absl::StatusOr<ModelPrograms::Program>& made,
                           const TensorPlaces& places, ExecutionRequest& begin);
  // What follows from the program.
  absl::Status Complete(const inference::ModelInferRequest& header, const CallerPlaces& caller,
                        ExecutionRequest& begin);
  absl::Status ReadValue(const Source& source, const TensorDesc& tensor,
                         absl::Span<std::byte> to) const;
  absl::Status DecodeOutputs(const inference::ModelInferRequest& header, const CallerPlaces& caller,
                             const std::vector<TensorDesc>& outputs);

  absl::Time arrived_;
  std::shared_ptr<const Model> model_;
  std::string id_;
  std::optional<SplitMessage> message_;
  onnx::InputBindings bindings_;  // of a graph
  PendingWork pending_;           // of MakeProgram
  std::vector<Source> sources_;   // in the order of the program's inputs
  std::vector<Output> outputs_;   // those that the caller wants, in the caller's order
  std::vector<SharedTensor> shared_outputs_;
};

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_INFER_REQUEST_H_
