// Requests of callers, valid and invalid, that load a server.
#ifndef OPMILL_TESTS_SOAK_WORKLOAD_H_
#define OPMILL_TESTS_SOAK_WORKLOAD_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "opmill/v1/service.grpc.pb.h"
#include "tests/conformance/random.h"
#include "tests/soak/ledger.h"
#include "tests/soak/soak_case.h"
#include "tests/soak/tensor_workload.h"

namespace opmill {

// One caller of one server, with its own connection.
class Workload {
 public:
  struct Options {
    // Prefix of the actions' names in the ledger.
    std::string server;
    // True if calls may end with Unavailable, because the server is killed or loses its device.
    bool may_be_unavailable = false;
    TensorWorkload::Options tensors;
    // Longer than anything takes, except a hang.
    absl::Duration patience = absl::Seconds(300);
  };

  Workload(const std::string& address, SoakCases& cases, Ledger& ledger, const Options& options);

  // Performs one random action.
  void DoOne(Random& random);
  // Deletes what it has on the server.
  void Leave() { tensors_.DeleteAll(client()); }

 private:
  void Execute(Random& random);
  void ExecuteInTime(Random& random);  // with a deadline that may be too short
  void ExecuteMany(Random& random);    // on one stream, some cancelled
  void ReadSlowly(Random& random);     // possibly not to the end
  void SendBadDescriptor(Random& random);
  void SendWrongBytes(Random& random);
  void SendNonsense(Random& random);  // bytes that are not a message
  void Ask(Random& random);           // RPCs other than executions

  // Counts the end of an execution. Reports a status other than OK and `allowed`, and a wrong
  // result.
  void End(absl::string_view action, SoakCase& c, const absl::Status& status,
           const std::vector<OutputTensor>& outputs, std::vector<absl::StatusCode> allowed = {});
  void End(absl::string_view action, const absl::Status& status,
           std::vector<absl::StatusCode> allowed, const std::string& what);

  Client& client();

  const std::string address_;
  SoakCases& cases_;
  Ledger& ledger_;
  const Options options_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::OperatorService::Stub> stub_;
  std::unique_ptr<Client> client_;
  TensorWorkload tensors_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_SOAK_WORKLOAD_H_
