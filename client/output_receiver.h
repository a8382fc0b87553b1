// The answer to one execution on its way into a sink.
#ifndef OPMILL_CLIENT_OUTPUT_RECEIVER_H_
#define OPMILL_CLIENT_OUTPUT_RECEIVER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "client/execution.h"
#include "opmill/v1/service.pb.h"
#include "proto/payload.h"

namespace opmill {

// Holds the server to what it announced, so that a sink may trust outputs and offsets. Internal
// where it breaks its word; the sink's own failure where that has one.
class OutputReceiver {
 public:
  explicit OutputReceiver(OutputSink& sink) : sink_(sink) {}

  absl::Status Start(const v1::ExecutionStarted& started);
  absl::Status Write(const std::vector<IncomingChunk>& chunks);
  // Whether all that was announced has come.
  absl::Status End() const;

 private:
  OutputSink& sink_;
  bool is_started_ = false;
  std::vector<uint64_t> output_bytes_;
  std::vector<uint64_t> received_bytes_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_OUTPUT_RECEIVER_H_
