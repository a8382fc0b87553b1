// An ExecuteStream call that stays open, with executions that never receive their input.
#ifndef OPMILL_TESTS_BENCH_HELD_STREAM_H_
#define OPMILL_TESTS_BENCH_HELD_STREAM_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/client_callback.h"
#include "opmill/v1/operator.pb.h"

namespace opmill {

class HeldStream : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit HeldStream(grpc::GenericStub& stub);
  // Cancels the stream, and waits for its end.
  ~HeldStream() override;
  HeldStream(const HeldStream&) = delete;
  HeldStream& operator=(const HeldStream&) = delete;

  // May be called once. Returns when gRPC has taken the last begin.
  absl::Status Begin(const v1::OperatorDesc& desc, uint64_t executions);

  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  grpc::ClientContext context_;
  std::vector<grpc::ByteBuffer> begins_;
  grpc::ByteBuffer answer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t written_ = 0;
  bool broken_ = false;
  bool done_ = false;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_BENCH_HELD_STREAM_H_
