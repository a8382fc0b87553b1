// Passes the responses of one execution to a sink.
#ifndef OPMILL_CLIENT_OUTPUT_RECEIVER_H_
#define OPMILL_CLIENT_OUTPUT_RECEIVER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "client/execution.h"
#include "opmill/v1/service.pb.h"
#include "proto/payload.h"

namespace opmill {

// Checks the responses against what the server announced, so that a sink can rely on outputs and
// offsets. Returns Internal if they do not match, or the sink's own error.
class OutputReceiver {
 public:
  explicit OutputReceiver(OutputSink& sink) : sink_(sink) {}

  absl::Status Start(const v1::ExecutionStarted& started);
  absl::Status Write(const std::vector<IncomingChunk>& chunks);
  // Checks that everything announced has arrived.
  absl::Status End() const;

 private:
  OutputSink& sink_;
  bool is_started_ = false;
  std::vector<uint64_t> output_bytes_;
  std::vector<uint64_t> received_bytes_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_OUTPUT_RECEIVER_H_
