// Channels to one server, or to several that share the load.
#ifndef OPMILL_CLIENT_CHANNEL_H_
#define OPMILL_CLIENT_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "grpcpp/channel.h"

namespace opmill {

// Whether all addresses of the target are on this machine.
bool StaysOnThisMachine(const std::string& target);

// `target` is as for Client::Connect. InvalidArgument if it is malformed.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const std::string& target,
                                                           const ClientOptions& options);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CHANNEL_H_
