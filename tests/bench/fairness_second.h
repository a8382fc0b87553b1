// The second caller of the fairness benchmark, which does all it can.
#ifndef OPMILL_TESTS_BENCH_FAIRNESS_SECOND_H_
#define OPMILL_TESTS_BENCH_FAIRNESS_SECOND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "opmill/v1/service.grpc.pb.h"

namespace opmill {

struct SecondOptions {
  std::string address;
  std::string token;
  uint32_t streams = 64;
  uint32_t connections = 1000;
  uint64_t tensor_bytes = uint64_t{64} << 20;
  uint32_t broadcast_log2 = 31;
};

v1::OperatorDesc ArgMinOf(uint32_t count);
// Adds the token to the metadata of a call.
void SetToken(grpc::ClientContext& context, absl::string_view token);

class Second {
 public:
  // Writes a byte to the file descriptor `results` for each step: a message sent or received, a
  // cancelled call, a connection of `uploads`.
  Second(SecondOptions options, int results) : options_(std::move(options)), results_(results) {}

  // Does not return. `kind`: hardmax, uploads, cancels, broadcasts, small, or busy, which uses all
  // processors without the server.
  void Run(const std::string& kind);

 private:
  using Stub = v1::OperatorService::Stub;

  void Count();
  template <typename Step>
  void OnThreads(uint32_t count, const Step& step);
  std::unique_ptr<Stub> OwnConnection() const;
  void Execute(Stub& stub, const v1::OperatorDesc& desc, size_t bytes);
  void Cancel(Stub& stub);
  void UploadSlowly();

  const SecondOptions options_;
  const int results_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_BENCH_FAIRNESS_SECOND_H_
