// Checks the response to an execution and passes it to a sink.
#ifndef OPMILL_CLIENT_OUTPUT_RECEIVER_H_
#define OPMILL_CLIENT_OUTPUT_RECEIVER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "client/execution.h"
#include "opmill/v1/service.pb.h"
#include "proto/payload.h"

namespace opmill {

// Verifies that the server sends what it announced, so that sinks can rely on indices and offsets.
// Returns Internal if it does not, or the error of the sink.
class OutputReceiver {
 public:
  explicit OutputReceiver(OutputSink& sink) : sink_(sink) {}

  absl::Status Start(const v1::ExecutionStarted& started);
  absl::Status Write(const std::vector<IncomingChunk>& chunks);
  // Returns an error if announced bytes are missing.
  absl::Status End() const;

 private:
  OutputSink& sink_;
  bool is_started_ = false;
  std::vector<uint64_t> output_bytes_;
  std::vector<uint64_t> received_bytes_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_OUTPUT_RECEIVER_H_
