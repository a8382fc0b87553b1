// The limits that apply to the bytes of each connection, after TLS and before gRPC parses them.
#ifndef OPMILL_SERVER_NETWORK_TRANSPORT_RULES_H_
#define OPMILL_SERVER_NETWORK_TRANSPORT_RULES_H_

#include <functional>
#include <memory>
#include <string>

#include "server/network/call_budget.h"
#include "server/network/connections.h"
#include "server/network/http2_calls.h"

namespace opmill {

struct TransportRules {
  std::shared_ptr<CallBudget> budget;
  MessageLimit message_limit;
  // Closes a connection, by the name of its peer.
  std::function<void(const std::string& peer, Connections::Reason reason)> close;
};

// The rules for connections that are accepted from then on. Without rules, or where
// server/network/transport_posix.cc does not apply, gRPC's own limits remain. Thread-safe.
void SetTransportRules(std::shared_ptr<const TransportRules> rules);
std::shared_ptr<const TransportRules> CurrentTransportRules();

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_TRANSPORT_RULES_H_
