#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/network/listener.h"

namespace opmill {
namespace {

constexpr char kMaxConnectionsArgument[] = "grpc.max_allowed_incoming_connections";

class GrpcListener final : public Listener {
 public:
  GrpcListener(const std::vector<std::string>& addresses, const MakeCredentials& make_credentials,
               grpc::ServerBuilder& builder)
      : addresses_(addresses), ports_(addresses.size()) {
    for (size_t i = 0; i < addresses.size(); ++i) {
      builder.AddListeningPort(addresses[i], make_credentials(), &ports_[i]);
    }
  }

  absl::Status Start() override {
    std::vector<std::string> failed;
    for (size_t i = 0; i < ports_.size(); ++i) {
      std::string& address = addresses_[i];
      if (ports_[i] == 0) failed.push_back(address);
      if (absl::EndsWith(address, ":0") && !absl::StartsWith(address, "unix:")) {
        address = absl::StrCat(absl::StripSuffix(address, "0"), ports_[i]);
      }
    }
    return failed.empty() ? absl::OkStatus() : CannotListen(failed);
  }

  const std::vector<std::string>& addresses() const override { return addresses_; }

 private:
  std::vector<std::string> addresses_;
  std::vector<int> ports_;  // set by gRPC when the server is built
};

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Create(
    const std::vector<std::string>& addresses, Connections& connections,
    const MakeCredentials& make_credentials, grpc::ServerBuilder& builder) {
  // A port that another process uses is refused, not shared.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(kMaxConnectionsArgument,
                             static_cast<int>(connections.max_connections()));
  return std::make_unique<GrpcListener>(addresses, make_credentials, builder);
}

}  // namespace opmill
