// Inputs, options and outputs of one execution.
#ifndef OPMILL_CLIENT_EXECUTION_H_
#define OPMILL_CLIENT_EXECUTION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "opmill/v1/model.pb.h"
#include "opmill/v1/operator.pb.h"
#include "opmill/v1/resident.pb.h"
#include "opmill/v1/service.pb.h"
#include "opmill/v1/tensor.pb.h"
#include "proto/payload.h"

namespace opmill {

// The bytes of a tensor, which are sent without a copy. gRPC may still read them shortly after the
// execution has ended, so each message in flight holds a reference to their `owner`: a mapped file,
// a vector, or null for bytes that outlive the client. The last reference may be released on a
// thread of gRPC. The owner's destructor must not call the client.
struct InputBytes {
  const std::byte* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
};

// The sum of their sizes.
size_t TotalBytes(absl::Span<const InputBytes> inputs);

// What is computed: an operator, or a model of the server with all its inputs. Inputs that have a
// value come last; their bytes are part of the message.
using Computation = std::variant<v1::OperatorDesc, v1::ModelDesc>;

// Sets the operator or the model of a request.
template <typename Request>
void SetComputation(const Computation& computation, Request& request) {
  if (const auto* const model = std::get_if<v1::ModelDesc>(&computation)) {
    *request.mutable_model() = *model;
  } else {
    *request.mutable_operator_() = std::get<v1::OperatorDesc>(computation);
  }
}

struct ExecutionOptions {
  std::optional<v1::FeatureLevel> feature_level;  // default: the server's newest
  absl::Duration timeout = absl::InfiniteDuration();
  // Of this caller's executions that wait for the device, the greatest priority runs first.
  int32_t priority = 0;
  // Tensors that stay on the server. The bytes of an input that one of them is are empty.
  std::vector<v1::ResidentInput> resident_inputs;
  std::vector<v1::ResidentOutput> resident_outputs;
  // Called with the number of input bytes that gRPC has accepted so far, until the call or stream
  // ends.
  std::function<void(uint64_t sent_bytes)> progress;
};

// Sets everything but the timeout.
template <typename Request>
void SetOptions(const ExecutionOptions& options, Request& request) {
  if (options.feature_level) request.set_feature_level(*options.feature_level);
  request.set_priority(options.priority);
  for (const v1::ResidentInput& input : options.resident_inputs) {
    *request.add_resident_inputs() = input;
  }
  for (const v1::ResidentOutput& output : options.resident_outputs) {
    *request.add_resident_outputs() = output;
  }
}

// The tensors of an execution in segments of shared memory, which the caller has created and keeps
// until the execution has ended (opmill.v1.SharedMemoryRange).
struct SharedTensors {
  // One for each input; empty ones for values and resident inputs, as for outputs that stay.
  std::vector<v1::SharedMemoryRange> inputs;
  std::vector<v1::SharedMemoryRange> outputs;  // one for each output, or none
};

// Receives the outputs of an execution. Called by one thread at a time. An error that it returns
// ends the execution with that error.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  // Called before the first Write. Called again if the execution is retried; data that was written
  // before is then to be discarded.
  virtual absl::Status Start(const v1::ExecutionStarted& started) = 0;
  // Bytes of an output, starting at `offset`. The bytes of each output arrive in order, without
  // gaps.
  virtual absl::Status Write(size_t output, uint64_t offset, const Payload& bytes) = 0;
};

struct OutputTensor {
  v1::TensorDesc desc;
  std::vector<std::byte> bytes;
};

// Keeps the outputs in memory.
class MemorySink : public OutputSink {
 public:
  absl::Status Start(const v1::ExecutionStarted& started) override;
  absl::Status Write(size_t output, uint64_t offset, const Payload& bytes) override;

  std::vector<OutputTensor>& outputs() { return outputs_; }

 private:
  std::vector<OutputTensor> outputs_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_EXECUTION_H_
