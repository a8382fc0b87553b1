// Which of a client's servers has a tensor that stays.
#ifndef OPMILL_CLIENT_TENSOR_SERVERS_H_
#define OPMILL_CLIENT_TENSOR_SERVERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/execution.h"
#include "opmill/v1/service.pb.h"

namespace opmill {

// Of a client with several addresses, which connects to each of them when it is needed. Remembers
// which server has a tensor, and looks for it again after that one has answered NotFound.
// Thread-safe.
class TensorServers {
 public:
  using Call = std::function<absl::StatusOr<v1::ExecutionStatistics>(Client&)>;

  // `addresses` are those of single servers.
  TensorServers(std::vector<std::string> addresses, ClientOptions options)
      : addresses_(std::move(addresses)), options_(std::move(options)) {}

  // Calls on the server that has the tensors which `execution` names. New ones are put there too,
  // or on one server after the other. InvalidArgument if several servers have them.
  absl::StatusOr<v1::ExecutionStatistics> Execute(const ExecutionOptions& execution,
                                                  const Call& call);
  // Those of all servers, by name, or the one with this name.
  absl::StatusOr<v1::ListTensorsResponse> List(const std::string& name);
  absl::Status Delete(const std::string& name, std::optional<uint64_t> if_generation);

 private:
  struct Found {
    std::string address;
    v1::ListTensorsResponse tensor;
  };

  absl::StatusOr<Client*> At(const std::string& address);
  // The server that is asked first is the one that is known to have had it.
  absl::StatusOr<Found> Find(const std::string& name);
  // Find, unless a server is known.
  absl::StatusOr<std::string> PlaceOf(const std::string& name);
  // Of all tensors that the execution names. Empty: it may be any.
  absl::StatusOr<std::string> PlaceOf(const ExecutionOptions& execution);
  std::optional<std::string> Known(const std::string& name);
  void Remember(const std::string& name, const std::string& address);
  void Forget(const std::string& name);
  std::string NextInTurn();

  const std::vector<std::string> addresses_;
  const ClientOptions options_;
  std::mutex mutex_;
  // Guarded by the mutex. Clients stay until the end.
  std::map<std::string, std::unique_ptr<Client>> clients_;
  std::map<std::string, std::string> places_;  // of tensors
  size_t turn_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_TENSOR_SERVERS_H_
