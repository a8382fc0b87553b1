// One execution as callers see it: the bytes that go in, and what takes the bytes that come out.
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

// A tensor's bytes, which are sent from where they are. gRPC may read them for a moment after the
// execution has ended, so each message under way holds a reference to `owner`, which keeps them:
// a mapped file, a vector, or nothing for bytes that outlive the client. It may be released on a
// thread of gRPC's, and must not call the client from its destructor.
struct InputBytes {
  const std::byte* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
};

// Of all of them.
size_t TotalBytes(absl::Span<const InputBytes> inputs);

struct ExecutionOptions {
  std::optional<v1::FeatureLevel> feature_level;  // none: the server's newest
  absl::Duration timeout = absl::InfiniteDuration();
  // Called with the bytes of input that gRPC has taken so far, until the call or stream ends.
  std::function<void(uint64_t sent_bytes)> progress;
};

// Takes an execution's outputs as they come, from one thread at a time. A failure that it returns
// ends the execution with that failure.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  // What is coming, before the first Write. Comes again where an execution is tried again; what was
  // written before then counts for nothing.
  virtual absl::Status Start(const v1::ExecutionStarted& started) = 0;
  // Bytes of an output from `offset` on; those of one output come in order and leave none out.
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
