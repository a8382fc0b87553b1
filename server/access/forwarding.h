// Calls that the server makes to its own services, for callers of another protocol.
#ifndef OPMILL_SERVER_ACCESS_FORWARDING_H_
#define OPMILL_SERVER_ACCESS_FORWARDING_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "grpcpp/grpcpp.h"

namespace opmill {

struct ForwardedCaller {
  std::string peer;  // in gRPC's form: "ipv4:10.0.0.7:51342"
  std::string name;  // of its token or certificate; may be empty
};

// Says on behalf of whom a call is made, in its metadata. They contain a random secret of this
// object, which leaves the process only if they are sent to another one: they are for in-process
// channels. Remote callers can therefore not claim to be others. Thread-safe.
class Forwarding {
 public:
  Forwarding();

  void Mark(const ForwardedCaller& caller, grpc::ClientContext& call) const;
  // Nullopt for calls that were not marked by this object.
  std::optional<ForwardedCaller> Find(const grpc::CallbackServerContext& call) const;

 private:
  const std::string secret_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_ACCESS_FORWARDING_H_
