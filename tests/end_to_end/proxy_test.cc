// Servers behind HAProxy, with the configuration in deploy/.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "grpcpp/grpcpp.h"
#include "tests/end_to_end/replicas_fixture.h"
#include "tests/support/scratch_directory.h"

extern char** environ;

namespace opmill {
namespace {

// deploy/haproxy.cfg with the addresses of these servers, on a socket that it inherits.
std::string ConfigurationFor(const Replicas& replicas, int socket) {
  std::ifstream file(OPMILL_HAPROXY_CONFIGURATION);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto health_port = [&](size_t index) {
    const std::string& address = replicas.metrics_address(index);
    return address.substr(address.rfind(':') + 1);
  };
  std::vector<std::pair<std::string, std::string>> places = {
      {"bind :50051 proto", absl::StrCat("bind fd@", socket, " proto")}, {" port 9464", ""}};
  for (size_t i = 0; i < kReplicas; ++i) {
    places.emplace_back(absl::StrCat("10.0.0.", i + 1, ":50051"),
                        absl::StrCat(replicas.address(i), " port ", health_port(i)));
  }
  for (const auto& [place, value] : places) EXPECT_TRUE(absl::StrContains(text, place)) << place;
  return absl::StrReplaceAll(text, places);
}

class Proxy {
 public:
  explicit Proxy(const Replicas& replicas) {
    const int socket_ = BindToLoopback(0);
    EXPECT_EQ(listen(socket_, 100), 0);
    sockaddr_in address = {};
    socklen_t size = sizeof(address);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));

    const std::string path = (folder_.path() / "haproxy.cfg").string();
    std::ofstream(path) << ConfigurationFor(replicas, socket_);
    std::string command[] = {OPMILL_HAPROXY, "-db", "-q", "-f", path};
    std::vector<char*> arguments;
    for (std::string& argument : command) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, arguments[0], nullptr, nullptr, arguments.data(), environ), 0)
        << "./dev test fetches " << OPMILL_HAPROXY;
    close(socket_);
  }
  ~Proxy() {
    if (pid_ <= 0) return;
    EXPECT_EQ(waitpid(pid_, nullptr, WNOHANG), 0) << "It has ended by itself.";
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  const std::string& address() const { return address_; }

 private:
  ScratchDirectory folder_;
  std::string address_;
  pid_t pid_ = 0;
};

class ProxyTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { grpc_init(); }

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(replicas_.StartAll());
    proxy_.emplace(replicas_);
  }

  Client Connect(const ClientOptions& options = {}) {
    absl::StatusOr<Client> client = Client::Connect(proxy_->address(), options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  Replicas replicas_;
  std::optional<Proxy> proxy_;
};

TEST_F(ProxyTest, SharesTheCallsOfOneConnection) {
  Client client = Connect();
  Load load(client);
  for (size_t i = 0; i < kReplicas; ++i) replicas_.AwaitWork(i, 10);
  load.Stop();
  EXPECT_EQ(load.failures(), "");
}

TEST_F(ProxyTest, NoCallFailsWhileAllAreRestartedInTurn) {
  Client client = Connect();
  Load load(client);
  replicas_.RestartInTurn([&] { load.AwaitMore(30); });
  load.Stop();
  EXPECT_EQ(load.failures(), "");
}

TEST_F(ProxyTest, OnlyCallsInFlightAreRetriedWhenOneIsKilled) {
  Client client = Connect({.max_attempts = 1});
  Load load(client, Load::Unavailable::kIsCounted);
  load.AwaitMore(60);
  EXPECT_EQ(load.begun_again(), 0);
  replicas_.Kill(1);
  load.AwaitMore(200);
  load.Stop();
  EXPECT_EQ(load.failures(), "");
  std::printf("%d calls were begun again\n", load.begun_again());
  EXPECT_LE(load.begun_again(), Load::kThreads);
}

}  // namespace
}  // namespace opmill
