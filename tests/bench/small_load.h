// Small calls to any of the measured servers, with a given concurrency.
#ifndef OPMILL_TESTS_BENCH_SMALL_LOAD_H_
#define OPMILL_TESTS_BENCH_SMALL_LOAD_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/load.h"
#include "client/client.h"
#include "grpcpp/generic/generic_stub.h"
#include "tests/bench/transfer.h"

namespace opmill {

// One call each: one request message, and any response, with this payload.
absl::StatusOr<LoadReport> RunCalls(grpc::GenericStub& stub, const Outgoing& outgoing,
                                    const LoadPlan& plan, const std::string& expected);
// Executions on one ExecuteStream, through the client library.
absl::StatusOr<LoadReport> RunExecutions(Client& client, const v1::OperatorDesc& desc,
                                         const InputBytes& input, const LoadPlan& plan,
                                         const std::string& expected);

}  // namespace opmill

#endif  // OPMILL_TESTS_BENCH_SMALL_LOAD_H_
