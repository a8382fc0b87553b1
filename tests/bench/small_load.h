// Runs small calls with a given concurrency: each end starts the next call.
#ifndef OPMILL_TESTS_BENCH_SMALL_LOAD_H_
#define OPMILL_TESTS_BENCH_SMALL_LOAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "grpcpp/generic/generic_stub.h"
#include "tests/bench/transfer.h"

namespace opmill {

struct LoadPlan {
  uint32_t concurrency = 1;
  absl::Duration duration;
  absl::Duration warm_up;  // not measured
  std::string expected;    // payload of every response; not checked for responses without payload
};

struct LoadReport {
  double calls_per_second = 0;
  std::vector<double> latencies;  // in seconds, sorted
  double mean_batch = 0;          // executions per submission; 0 if the server does not report it
};

// One call each: one request message, and any response.
absl::StatusOr<LoadReport> RunCalls(grpc::GenericStub& stub, const Outgoing& outgoing,
                                    const LoadPlan& plan);
// Executions on one ExecuteStream, through the client library.
absl::StatusOr<LoadReport> RunOnStream(Client& client, const v1::OperatorDesc& desc,
                                       const InputBytes& input, const LoadPlan& plan);

}  // namespace opmill

#endif  // OPMILL_TESTS_BENCH_SMALL_LOAD_H_
