// Many executions at a time over one ExecuteStream call.
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

// Uploads take turns, a message each, and no more than a message is in gRPC's hands at a time;
// inputs are not copied. Any thread may call. Example:
//
//   std::unique_ptr<ExecutionStream> stream = *client.OpenStream();
//   stream->Begin(desc, input, sink, [](absl::StatusOr<v1::ExecutionStatistics> end) { ... });
//   absl::Status status = stream->Finish();
class ExecutionStream {
 public:
  // How one execution ended. Called once, on a thread of gRPC's that must not be kept: it may call
  // Begin and Cancel, and neither Finish nor the destructor.
  using Done = std::function<void(absl::StatusOr<v1::ExecutionStatistics>)>;

  struct Options {
    size_t chunk_bytes = size_t{1} << 20;               // of inputs in one message
    absl::Duration timeout = absl::InfiniteDuration();  // of the stream as a whole
    std::string token;                                  // empty: none
  };

  ExecutionStream(grpc::GenericStub& stub, const Options& options);
  // Cancels what has not ended, and waits until it has.
  ~ExecutionStream();

  // `sink` must live until `done` is called; `done` comes before Begin returns where the stream has
  // ended already. The inputs are sent one after the other, in the operator's order. What does not
  // fit into the first message follows in chunks.
  uint64_t Begin(v1::OperatorDesc desc, std::vector<InputBytes> inputs, OutputSink& sink, Done done,
                 const ExecutionOptions& options = {});
  uint64_t Begin(v1::OperatorDesc desc, InputBytes input, OutputSink& sink, Done done,
                 const ExecutionOptions& options = {});
  // Asks the server to end it with CANCELLED. Of no effect when it has ended.
  void Cancel(uint64_t execution_id);
  // After the last Begin: waits for all executions to end. Answers how the stream itself ended.
  absl::Status Finish();

 private:
  class Call;
  std::unique_ptr<Call> call_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_EXECUTION_STREAM_H_
