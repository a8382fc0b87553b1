// Channels to one server, or to several that share the load.
#ifndef OPMILL_CLIENT_CHANNEL_H_
#define OPMILL_CLIENT_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "grpcpp/channel.h"

namespace opmill {

// Whether all addresses of the target are on this machine.
bool StaysOnThisMachine(const std::string& target);

// `target` is as for Client::Connect. InvalidArgument if it is malformed.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const std::string& target,
                                                           const ClientOptions& options);

// Sleeps for `time`, but only until the channel connects again if it loses its connection or has
// none. gRPC 1.51 progresses with a connection every 5 s only if no thread waits for it.
void SleepUntilConnected(grpc::Channel& channel, absl::Duration time);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CHANNEL_H_
