// A channel to one server, or to several that share the work.
#ifndef OPMILL_CLIENT_CHANNEL_H_
#define OPMILL_CLIENT_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "grpcpp/channel.h"

namespace opmill {

// Are all of the target's addresses of this machine?
bool StaysOnThisMachine(const std::string& target);

// `target` as Client::Connect takes it. InvalidArgument where it is none.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const std::string& target,
                                                           const ClientOptions& options);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CHANNEL_H_
