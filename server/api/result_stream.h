// Splits the outputs of an execution into messages.
#ifndef OPMILL_SERVER_API_RESULT_STREAM_H_
#define OPMILL_SERVER_API_RESULT_STREAM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "opmill/v1/service.pb.h"
#include "proto/payload.h"
#include "server/api/result_position.h"
#include "server/execution/execution.h"

namespace opmill {

// Bytes of an output, without a copy unless they are few.
grpc::Slice SliceOf(const std::shared_ptr<BudgetedBuffer>& output, uint64_t offset, uint64_t bytes);

// Of one whose results are ready; also counts it in the statistics of its model.
void EncodeStatistics(const Execution& execution, v1::ExecutionStatistics& to);

// Not thread-safe. The bytes are not copied: a message keeps the buffers alive until the transport
// is done with it.
class ResultStream {
 public:
  // Continues at `position`, where another ResultStream has stopped.
  ResultStream(std::shared_ptr<Execution> execution, uint64_t max_chunk_bytes,
               ResultPosition position = {})
      : execution_(std::move(execution)), max_chunk_bytes_(max_chunk_bytes), next_(position) {}

  const std::shared_ptr<Execution>& execution() const { return execution_; }
  ResultPosition position() const { return next_; }
  bool done() const { return next_.output == execution_->outputs().size(); }

  // Creates the next message from `response`, an ExecuteResponse or ExecuteStreamResponse. The
  // first message has `started`, the last one `statistics`. Returns false if the execution has
  // ended in the meantime; its status says why.
  template <typename Response>
  bool Next(Response& response, grpc::ByteBuffer& message) {
    if (!next_.started) EncodeStarted(*response.mutable_started());
    std::optional<std::vector<OutgoingChunk>> chunks = NextChunks();
    if (!chunks.has_value()) return false;
    if (done()) EncodeStatistics(*execution_, *response.mutable_statistics());
    grpc::ByteBuffer joined = JoinChunks(response, *std::move(chunks));
    message.Swap(&joined);
    return true;
  }

 private:
  // At least one byte, and at most max_chunk_bytes_ in total.
  std::optional<std::vector<OutgoingChunk>> NextChunks();
  void EncodeStarted(v1::ExecutionStarted& to);

  const std::shared_ptr<Execution> execution_;
  const uint64_t max_chunk_bytes_;
  ResultPosition next_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_RESULT_STREAM_H_
