// Many concurrent executions over one ExecuteStream call.
#ifndef OPMILL_CLIENT_EXECUTION_STREAM_H_
#define OPMILL_CLIENT_EXECUTION_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/execution.h"
#include "grpcpp/generic/generic_stub.h"
#include "opmill/v1/operator.pb.h"
#include "opmill/v1/service.pb.h"

namespace opmill {

// Thread-safe. Uploads alternate message by message; one message is in flight at a time. Inputs are
// not copied. Example:
//
//   std::unique_ptr<ExecutionStream> stream = *client.OpenStream();
//   stream->Begin(desc, input, sink, [](absl::StatusOr<v1::ExecutionStatistics> end) { ... });
//   absl::Status status = stream->Finish();
class ExecutionStream {
 public:
  // Receives the result of an execution. Called once, on a thread of gRPC. It must not block; it
  // may call Begin and Cancel, but neither Finish nor the destructor.
  using Done = std::function<void(absl::StatusOr<v1::ExecutionStatistics>)>;

  struct Options {
    size_t chunk_bytes = size_t{1} << 20;               // of inputs in one message
    absl::Duration timeout = absl::InfiniteDuration();  // of the whole stream
    std::string token;                                  // empty: none
    std::string traceparent;                            // the same
  };

  ExecutionStream(grpc::GenericStub& stub, const Options& options);
  // Cancels all executions in progress, and waits until they have ended.
  ~ExecutionStream();

  // `sink` must live until `done` is called. If the stream has already ended, `done` is called
  // before Begin returns. The inputs are sent in the order of the computation; what does not fit
  // into the first message follows in chunks.
  uint64_t Begin(const Computation& computation, std::vector<InputBytes> inputs, OutputSink& sink,
                 Done done, const ExecutionOptions& options = {});
  uint64_t Begin(const Computation& computation, InputBytes input, OutputSink& sink, Done done,
                 const ExecutionOptions& options = {});
  // Asks the server to cancel an execution. Has no effect on one that has ended.
  void Cancel(uint64_t execution_id);
  // Waits for all executions to end. To be called after the last Begin. Returns the status of the
  // stream itself.
  absl::Status Finish();

 private:
  class Call;
  std::unique_ptr<Call> call_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_EXECUTION_STREAM_H_
