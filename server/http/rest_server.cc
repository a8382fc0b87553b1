#include "server/http/rest_server.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/base/server_address.h"
#include "server/http/rest_connection.h"
#include "server/network/system_socket.h"

namespace opmill {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
template <typename T = void>
using Task = asio::awaitable<T>;

constexpr std::chrono::milliseconds kPauseWithoutDescriptors(100);
constexpr unsigned kLeastThreads = 2;
constexpr unsigned kMostThreads = 8;

// gRPC's name of a peer, from which limits take the address.
std::string NameOf(const tcp::endpoint& peer) {
  const asio::ip::address address = peer.address();
  if (address.is_v4()) return absl::StrCat("ipv4:", address.to_string(), ":", peer.port());
  if (address.to_v6().is_v4_mapped()) {
    const auto v4 = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
    return absl::StrCat("ipv4:", v4.to_string(), ":", peer.port());
  }
  return absl::StrCat("ipv6:%5B", address.to_string(), "%5D:", peer.port());
}

std::shared_ptr<asio::ssl::context> ContextOf(const TlsMaterial& material) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  error_code error;  // ReadTlsMaterial has checked the material
  context->set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
  context->use_certificate_chain(asio::buffer(material.certificates), error);
  context->use_private_key(asio::buffer(material.key), asio::ssl::context::pem, error);
  if (!material.client_authorities.empty()) {
    context->add_certificate_authority(asio::buffer(material.client_authorities), error);
    context->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert,
                             error);
  }
  return context;
}

class AsioRestServer final : public RestServer {
 public:
  explicit AsioRestServer(const Parts& parts) : shared_(parts) {}

  ~AsioRestServer() override {
    asio::post(context_, [this] {
      error_code ignored;
      acceptor_.close(ignored);
    });
    shared_.connections.CloseAll();
    context_.stop();
    for (std::thread& thread : threads_) thread.join();
  }

  // False if the address is not available.
  bool Start(const std::string& address) {
    StartSockets();
    const std::string host = address.substr(0, address.rfind(':'));
    const std::string name(absl::StripPrefix(absl::StripSuffix(host, "]"), "["));
    tcp::resolver resolver(context_);
    error_code error;
    const auto found =
        resolver.resolve(name, absl::StrCat(PortOf(address).value_or(0)),
                         tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error || found.empty()) return false;
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol(), error);
    if (error) return false;
    PrepareToListen(acceptor_.native_handle(), endpoint.address().is_v6());
    acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) return false;
    address_ = absl::StrCat(host, ":", acceptor_.local_endpoint(error).port());
    asio::co_spawn(
        context_, [this]() -> Task<> { co_await Accept(); }, asio::detached);
    const unsigned threads =
        std::clamp(std::thread::hardware_concurrency(), kLeastThreads, kMostThreads);
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { context_.run(); });
    return true;
  }

  const std::string& address() const override { return address_; }

  RestCounters counters() const override {
    return {.open_connections = shared_.connections.open(),
            .refused_connections = shared_.connections.refused(),
            .closed_connections = shared_.connections.closed(),
            .requests = shared_.requests,
            .failed_requests = shared_.failed_requests,
            .body_bytes = shared_.bodies.used(),
            .body_bytes_limit = shared_.bodies.limit()};
  }

 private:
  Task<> Accept() {
    while (acceptor_.is_open()) {
      error_code error;
      tcp::socket socket = co_await acceptor_.async_accept(
          asio::make_strand(context_), asio::redirect_error(asio::use_awaitable, error));
      if (!error) {
        Admit(std::move(socket));
      } else if (error == asio::error::no_descriptors || error == asio::error::no_buffer_space ||
                 error == asio::error::no_memory) {
        asio::steady_timer pause(context_, kPauseWithoutDescriptors);
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      }
    }
  }

  void Admit(tcp::socket socket) {
    error_code error;
    const tcp::endpoint endpoint = socket.remote_endpoint(error);
    if (error) return;  // it is already gone
    socket.set_option(tcp::no_delay(true), error);
    const std::shared_ptr<const TlsMaterial> material = shared_.parts.access.tls_material();
    if (material != nullptr && material != material_) {
      material_ = material;
      tls_ = ContextOf(*material);
    }
    ServeConnection(shared_, NameOf(endpoint), std::move(socket), tls_);
  }

  RestShared shared_;
  std::string address_;
  asio::io_context context_;
  tcp::acceptor acceptor_{context_};
  // Of the files at the last connection.
  std::shared_ptr<const TlsMaterial> material_;
  std::shared_ptr<asio::ssl::context> tls_;
  std::vector<std::thread> threads_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RestServer>> RestServer::Listen(const std::string& address,
                                                               const Parts& parts) {
  auto server = std::make_unique<AsioRestServer>(parts);
  if (server->Start(address)) return server;
  return absl::UnavailableError(
      absl::StrCat("The server cannot listen at ", address,
                   " (--http_address): the address is not local, or is in use."));
}

}  // namespace opmill
