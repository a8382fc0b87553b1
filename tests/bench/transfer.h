// Makes one call to any of the measured servers, with prepared messages: the client does the same
// work for all of them.
#ifndef OPMILL_TESTS_BENCH_TRANSFER_H_
#define OPMILL_TESTS_BENCH_TRANSFER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/generic/generic_stub.h"
#include "opmill/v1/operator.pb.h"
#include "opmill/v1/service.pb.h"

namespace opmill {

enum class Answer { kBytes, kExecute, kExecuteStream, kAfternoon, kInference };

struct Outgoing {
  std::string method;
  std::vector<grpc::ByteBuffer> messages;
  Answer answer = Answer::kBytes;
  bool streams_answer = false;  // one request message, any number of responses
};

// `bytes` bytes of floats 512, ..., 1023, 0, ..., 511, repeated, in messages of `chunk_bytes`. Both
// are multiples of 4096, or `bytes` is less than the chunk.
struct Shape {
  uint64_t bytes = 0;
  uint64_t chunk_bytes = uint64_t{1} << 20;
};
constexpr uint64_t kPatternElements = 1024;
grpc::Slice PatternSlice(uint64_t bytes);  // the first `bytes`, at most 4 MiB

Outgoing BareMessages(const std::string& method, const Shape& shape);
Outgoing SourceMessage(uint64_t bytes);
Outgoing ExecuteMessage(const v1::OperatorDesc& desc, const Shape& shape);
Outgoing ExecuteStreamMessages(const v1::OperatorDesc& desc, const Shape& shape);
// A request of the Open Inference Protocol for one output of `model` along axis 1 of an array
// [1, bytes / 4]. `bytes` is at most 4 MiB.
Outgoing InferMessage(const std::string& model, const Shape& shape);
// The serialized request of ModelInfer or Execute.
Outgoing GivenMessage(const std::string& request, bool is_inference);
// `operation` over the last axis of [bytes / 4 / columns, columns]; in one message, or streamed.
Outgoing AfternoonMessages(const std::string& operation, uint64_t columns, bool streamed,
                           const Shape& shape);

struct SeenStatistics {
  double upload_seconds = 0;
  double compile_seconds = 0;
  double queue_seconds = 0;
  double compute_seconds = 0;
  double download_seconds = 0;
  bool was_cached = false;
  uint32_t batch_size = 0;
};

// The contents of a message from the server. An error that it reports, or a message that cannot be
// parsed, is an error.
struct Seen {
  uint64_t payload_bytes = 0;
  SeenStatistics statistics;  // the last one
  bool ended = false;         // the response is complete
  std::string payload;        // if `keep` is set
};
absl::Status Look(Answer answer, grpc::ByteBuffer& message, bool keep, Seen& seen);

// Sends all messages, reads all responses, waits for the end.
struct Transferred {
  absl::Duration duration;
  Seen seen;
};
absl::StatusOr<Transferred> Transfer(grpc::GenericStub& stub, Outgoing& outgoing, bool keep);

}  // namespace opmill

#endif  // OPMILL_TESTS_BENCH_TRANSFER_H_
