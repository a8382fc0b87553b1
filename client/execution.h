// Inputs, options and outputs of one execution.
#ifndef OPMILL_CLIENT_EXECUTION_H_
#define OPMILL_CLIENT_EXECUTION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "opmill/v1/operator.pb.h"
#include "opmill/v1/service.pb.h"
#include "opmill/v1/tensor.pb.h"
#include "proto/payload.h"

namespace opmill {

// A tensor's bytes, which are sent without a copy. gRPC may read them shortly after the execution
// has ended, so each message in flight holds a reference to `owner`, which keeps them alive: a
// mapped file, a vector, or null for bytes that outlive the client. `owner` may be released on a
// gRPC thread, and its destructor must not call the client.
struct InputBytes {
  const std::byte* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
};

// The total size of all inputs.
size_t TotalBytes(absl::Span<const InputBytes> inputs);

struct ExecutionOptions {
  std::optional<v1::FeatureLevel> feature_level;  // default: the server's newest
  absl::Duration timeout = absl::InfiniteDuration();
  // Called with the number of input bytes that gRPC has taken so far, until the call or stream
  // ends.
  std::function<void(uint64_t sent_bytes)> progress;
};

// Receives the outputs of an execution as they arrive. Never called concurrently. An error that it
// returns ends the execution with that error.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  // Called before the first Write. Called again if the execution is retried; everything written
  // before then must be discarded.
  virtual absl::Status Start(const v1::ExecutionStarted& started) = 0;
  // The bytes of an output from `offset` on. Those of one output arrive in order and without gaps.
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
