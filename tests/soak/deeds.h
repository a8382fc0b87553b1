// What callers do to a server, good and bad.
#ifndef OPMILL_TESTS_SOAK_DEEDS_H_
#define OPMILL_TESTS_SOAK_DEEDS_H_

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

namespace opmill {

// One caller of one server, with a connection of its own.
class Deeds {
 public:
  struct Options {
    // Of the deeds' names in the ledger.
    std::string server;
    // May calls end Unavailable: does the server die, or lose its device?
    bool may_be_unavailable = false;
    // Longer than anything takes unless it hangs.
    absl::Duration patience = absl::Seconds(300);
  };

  Deeds(const std::string& address, SoakCases& cases, Ledger& ledger, const Options& options);

  // One, whichever the numbers say.
  void Do(Random& random);

 private:
  void Execute(Random& random);
  void ExecuteInTime(Random& random);  // with a deadline that may be too short
  void ExecuteMany(Random& random);    // on one stream, some cancelled
  void ReadSlowly(Random& random);     // and perhaps not to the end
  void SendBadDescriptor(Random& random);
  void SendWrongBytes(Random& random);
  void SendNonsense(Random& random);  // that is no message
  void Ask(Random& random);           // for what is no execution

  // Counts the end of an execution; complains of one that none of `allowed` explains, and of a
  // wrong answer.
  void End(absl::string_view deed, SoakCase& c, const absl::Status& status,
           const std::vector<OutputTensor>& outputs, std::vector<absl::StatusCode> allowed = {});
  void End(absl::string_view deed, const absl::Status& status,
           std::vector<absl::StatusCode> allowed, const std::string& what);

  Client& client();

  const std::string address_;
  SoakCases& cases_;
  Ledger& ledger_;
  const Options options_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::OperatorService::Stub> stub_;
  std::unique_ptr<Client> client_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_SOAK_DEEDS_H_
