// A caller of tensors that stay on the server, who knows what each of them should hold.
#ifndef OPMILL_TESTS_SOAK_TENSOR_WORKLOAD_H_
#define OPMILL_TESTS_SOAK_TENSOR_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/execution.h"
#include "opmill/v1/operator.pb.h"
#include "tests/conformance/random.h"

namespace opmill {

// All elements are small integers in FLOAT32, so that every result is exact on all devices. Not
// thread-safe.
class TensorWorkload {
 public:
  struct Options {
    std::string prefix;  // of the tensors' names; no other caller of the server has the same
    // True if the server may lose tensors, because it is killed or loses its device.
    bool may_be_lost = false;
    bool may_be_killed = false;  // the caller: all its tensors have leases
    absl::Duration patience;
  };
  // Called with the end of each call: the action, what the server said, and the codes other than OK
  // that are right.
  using Report = std::function<void(const std::string& action, const absl::Status& status,
                                    std::vector<absl::StatusCode> allowed)>;
  // Called with each wrong result.
  using Fail = std::function<void(const std::string& action, const std::string& mistake)>;

  TensorWorkload(Options options, Report report, Fail fail)
      : options_(std::move(options)), report_(std::move(report)), fail_(std::move(fail)) {}

  // One random call, or several that belong together.
  void DoOne(Client& client, Random& random);
  // Deletes the tensors that have no lease.
  void DeleteAll(Client& client);

 private:
  struct Tensor {
    std::vector<float> elements;  // rows of kWidth
    uint32_t capacity = 0;        // rows
  };
  using Tensors = std::map<std::string, Tensor>;

  void Put(Client& client, Random& random);
  void Abandon(Client& client, Random& random);  // with a lease
  void Append(Client& client, Random& random);
  void Write(Client& client, Random& random);
  void Delete(Client& client, Random& random);
  void Read(Client& client, Random& random);
  void Multiply(Client& client, Random& random);
  void Search(Client& client, Random& random);

  // Null if there is none yet.
  Tensors::value_type* Pick(Random& random);
  absl::Status Keep(Client& client, const std::vector<float>& rows, v1::ResidentOutput to,
                    const std::string& action);
  absl::StatusOr<std::vector<OutputTensor>> Run(Client& client, const std::string& action,
                                                const std::string& name,
                                                const v1::OperatorDesc& desc, uint32_t input,
                                                const std::vector<std::vector<float>>& inputs);
  // What calls that name a tensor may end with.
  std::vector<absl::StatusCode> LossCodes() const;

  const Options options_;
  const Report report_;
  const Fail fail_;
  Tensors tensors_;
  uint64_t next_ = 0;  // of names
};

}  // namespace opmill

#endif  // OPMILL_TESTS_SOAK_TENSOR_WORKLOAD_H_
