// Cuts the outputs of an execution into messages.
#ifndef OPMILL_SERVER_API_RESULT_STREAM_H_
#define OPMILL_SERVER_API_RESULT_STREAM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "grpcpp/support/byte_buffer.h"
#include "opmill/v1/service.pb.h"
#include "proto/payload.h"
#include "server/execution/execution.h"

namespace opmill {

// For one thread at a time. The bytes are not copied: a message holds on to the buffers until the
// transport is done with it.
class ResultStream {
 public:
  ResultStream(std::shared_ptr<Execution> execution, uint64_t max_chunk_bytes)
      : execution_(std::move(execution)), max_chunk_bytes_(max_chunk_bytes) {}

  const std::shared_ptr<Execution>& execution() const { return execution_; }
  bool done() const { return output_ == execution_->outputs().size(); }

  // The next message: `started` with the first, `statistics` with the last, and what stands in
  // `response`, an ExecuteResponse or ExecuteStreamResponse. False when the execution has ended in
  // the meantime; its status says why.
  template <typename Response>
  bool Next(Response& response, grpc::ByteBuffer& message) {
    if (!started_) EncodeStarted(*response.mutable_started());
    std::optional<std::vector<OutgoingChunk>> chunks = NextChunks();
    if (!chunks.has_value()) return false;
    if (done()) EncodeStatistics(*response.mutable_statistics());
    grpc::ByteBuffer joined = JoinChunks(response, *std::move(chunks));
    message.Swap(&joined);
    return true;
  }

 private:
  // As many bytes as a message may have, and at least one.
  std::optional<std::vector<OutgoingChunk>> NextChunks();
  void EncodeStarted(v1::ExecutionStarted& to);
  void EncodeStatistics(v1::ExecutionStatistics& to) const;

  const std::shared_ptr<Execution> execution_;
  const uint64_t max_chunk_bytes_;
  bool started_ = false;
  size_t output_ = 0;    // the next byte to send
  uint64_t offset_ = 0;  // likewise
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_RESULT_STREAM_H_
