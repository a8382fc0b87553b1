#include "server/metrics/http_endpoint.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "kernels/base/server_address.h"
#include "server/network/system_socket.h"

namespace opmill {
namespace {

using Clock = std::chrono::steady_clock;
using Answer = HttpEndpoint::Answer;
using Pages = HttpEndpoint::Pages;

constexpr size_t kMaxConnections = 256;
constexpr size_t kMaxConnectionsOfAPeer = 64;
constexpr size_t kMostHeaderBytes = 8 << 10;
constexpr std::chrono::seconds kHeaderTime(2);
constexpr std::chrono::seconds kAnswerTime(5);
// The resolution of deadlines and of the shutdown.
constexpr int kTickMilliseconds = 50;
// Serves open connections after accepting this many new ones.
constexpr int kMaxAcceptsAtOnce = 64;

class Socket {
 public:
  explicit Socket(SystemSocket socket) : socket_(socket) {}
  Socket(Socket&& other) noexcept : socket_(std::exchange(other.socket_, kNoSocket)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(socket_, other.socket_);
    return *this;
  }
  ~Socket() {
    if (socket_ != kNoSocket) CloseSocket(socket_);
  }
  SystemSocket get() const { return socket_; }

 private:
  SystemSocket socket_;
};

const char* Phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

// For browsers: nothing from elsewhere is loaded or run, no other site shows a page in a frame or
// takes it for a script, and none learns the address.
constexpr absl::string_view kSecurityFields =
    "\r\nContent-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
    "\r\nX-Content-Type-Options: nosniff"
    "\r\nCross-Origin-Resource-Policy: same-origin"
    "\r\nReferrer-Policy: no-referrer";

std::string Text(const Answer& answer, bool with_body = true) {
  return absl::StrCat(
      "HTTP/1.1 ", answer.status, " ", Phrase(answer.status),
      "\r\nContent-Type: ", answer.content_type, "\r\nContent-Length: ", answer.body.size(),
      answer.status == 405 ? "\r\nAllow: GET, HEAD" : "", kSecurityFields,
      "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n", with_body ? answer.body : "");
}

std::string AnswerTo(absl::string_view header, const Pages& pages) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::StripSuffix(header.substr(0, header.find('\n')), "\r"), ' ');
  if (words.size() != 3 || words[0].empty() || !absl::StartsWith(words[1], "/") ||
      !absl::StartsWith(words[2], "HTTP/1.")) {
    return Text({.status = 400, .body = "This is not an HTTP/1 request.\n"});
  }
  const bool with_body = words[0] != "HEAD";
  const auto page = pages.find(words[1].substr(0, words[1].find('?')));
  if (page == pages.end()) {
    return Text({.status = 404, .body = "There is no such page.\n"}, with_body);
  }
  if (words[0] != "GET" && with_body) return Text({.status = 405, .body = "GET or HEAD only.\n"});
  return Text(page->second(), with_body);
}

class HttpConnection {
 public:
  HttpConnection(Socket socket, std::string peer, Clock::time_point now)
      : socket_(std::move(socket)), peer_(std::move(peer)), deadline_(now + kHeaderTime) {}

  SystemSocket socket() const { return socket_.get(); }
  const std::string& peer() const { return peer_; }
  Clock::time_point deadline() const { return deadline_; }
  bool has_answer() const { return !answer_.empty(); }
  short awaits() const { return sent_ < answer_.size() ? POLLOUT : POLLIN; }

  // Makes as much progress as possible without blocking. Returns false once the connection is over.
  bool Advance(const Pages& pages, Clock::time_point now) {
    if (now >= deadline_) {
      if (has_answer()) return false;
      AnswerWith(Text({.status = 408, .body = "The request took more than 2 s.\n"}), now);
    }
    if (!has_answer() && !ReadHeader(pages, now)) return false;
    while (sent_ < answer_.size()) {
      const std::ptrdiff_t count = Send(socket(), answer_.data() + sent_, answer_.size() - sent_);
      if (count < 0) return WouldBlock();
      sent_ += static_cast<size_t>(count);
      if (sent_ == answer_.size()) EndSending(socket());
    }
    // Closing first would discard data that the peer has not read yet, if the peer is still
    // sending.
    return !has_answer() || Discard();
  }

 private:
  bool ReadHeader(const Pages& pages, Clock::time_point now) {
    std::array<char, 4096> bytes;
    while (!has_answer()) {
      const std::ptrdiff_t count = Receive(socket(), bytes.data(), bytes.size());
      if (count < 0) return WouldBlock();
      if (count == 0) return false;
      const size_t searched = header_.size() < 3 ? 0 : header_.size() - 3;
      header_.append(bytes.data(), static_cast<size_t>(count));
      const size_t end = header_.find("\r\n\r\n", searched);
      if (std::min(end, header_.size()) > kMostHeaderBytes) {
        AnswerWith(Text({.status = 431, .body = "The header is longer than 8192 bytes.\n"}), now);
      } else if (end != header_.npos) {
        AnswerWith(AnswerTo(header_, pages), now);
      }
    }
    return true;
  }

  void AnswerWith(std::string text, Clock::time_point now) {
    answer_ = std::move(text);
    deadline_ = now + kAnswerTime;
  }

  // Discards data after the request. Returns false at end-of-file.
  bool Discard() const {
    std::array<char, 4096> bytes;
    const std::ptrdiff_t count = Receive(socket(), bytes.data(), bytes.size());
    return count > 0 || (count < 0 && WouldBlock());
  }

  const Socket socket_;
  const std::string peer_;
  Clock::time_point deadline_;
  std::string header_;
  std::string answer_;  // empty until the header is complete
  size_t sent_ = 0;     // bytes of answer_
};

class PollingEndpoint final : public HttpEndpoint {
 public:
  explicit PollingEndpoint(Pages pages) : pages_(std::move(pages)) {}
  ~PollingEndpoint() override {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }

  // Returns false if the address is not available.
  bool Start(const std::string& address) {
    StartSockets();
    const std::string host = address.substr(0, address.rfind(':'));
    const std::string name(absl::StripPrefix(absl::StripSuffix(host, "]"), "["));
    for (const int family : {AF_INET, AF_INET6}) {
      addrinfo hints = {};
      hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
      hints.ai_family = family;
      hints.ai_socktype = SOCK_STREAM;
      addrinfo* found = nullptr;
      const std::string port = absl::StrCat(PortOf(address).value_or(0));
      if (getaddrinfo(name.c_str(), port.c_str(), &hints, &found) != 0) continue;
      const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
      if (!ListenAt(*found)) return false;
      address_ = absl::StrCat(host, ":", BoundPort());
      thread_ = std::thread([this] { Serve(); });
      return true;
    }
    return false;
  }

  const std::string& address() const override { return address_; }

 private:
  bool ListenAt(const addrinfo& at) {
    listening_ = Socket(socket(at.ai_family, at.ai_socktype, at.ai_protocol));
    if (listening_.get() == kNoSocket) return false;
    MakeNonblocking(listening_.get());
    PrepareToListen(listening_.get(), at.ai_family == AF_INET6);
    return bind(listening_.get(), at.ai_addr, static_cast<socklen_t>(at.ai_addrlen)) == 0 &&
           listen(listening_.get(), SOMAXCONN) == 0;
  }

  uint32_t BoundPort() const {
    sockaddr_storage bound = {};
    socklen_t bytes = sizeof(bound);
    getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&bound), &bytes);
    return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(bound).sin_port);
  }

  void Serve() {
    bool accepts = true;
    std::vector<pollfd> polled;
    while (!stopping_) {
      polled.assign(1, {.fd = listening_.get(), .events = POLLIN});
      if (!accepts) polled[0].events = 0;  // for one tick
      for (const HttpConnection& each : connections_) {
        polled.push_back({.fd = each.socket(), .events = each.awaits()});
      }
      PollSockets(polled.data(), polled.size(), kTickMilliseconds);
      const Clock::time_point now = Clock::now();
      auto next = polled.begin();
      std::erase_if(connections_, [&](HttpConnection& each) {
        const bool is_ready = (++next)->revents != 0;
        return (is_ready || now >= each.deadline()) && !each.Advance(pages_, now);
      });
      accepts = polled[0].revents == 0 || Accept(now);
    }
  }

  // Returns false if the process or the system is out of resources.
  bool Accept(Clock::time_point now) {
    for (int i = 0; i < kMaxAcceptsAtOnce; ++i) {
      sockaddr_storage from = {};
      socklen_t bytes = sizeof(from);
      Socket socket(accept(listening_.get(), reinterpret_cast<sockaddr*>(&from), &bytes));
      if (socket.get() == kNoSocket) {
        if (WouldBlock()) return true;
        if (LackedResources()) return false;
        continue;  // that connection is already gone
      }
      MakeNonblocking(socket.get());
      std::array<char, NI_MAXHOST> peer = {};
      getnameinfo(reinterpret_cast<sockaddr*>(&from), bytes, peer.data(),
                  static_cast<socklen_t>(peer.size()), nullptr, 0, NI_NUMERICHOST);
      MakeRoom(kMaxConnectionsOfAPeer, peer.data());
      MakeRoom(kMaxConnections, std::nullopt);
      connections_.emplace_back(std::move(socket), peer.data(), now);
      // The request has often arrived already. Serve it before newer connections can displace it.
      if (!connections_.back().Advance(pages_, now)) connections_.pop_back();
    }
    return true;
  }

  // Makes room for one connection if there are `most`, in all or from one peer. Connections that
  // wait for a request and those that wait for their answer to be read are two groups. The larger
  // group loses its oldest connection, so neither group can lock out the other.
  void MakeRoom(size_t most, std::optional<absl::string_view> peer) {
    using Iterator = std::list<HttpConnection>::iterator;
    std::array<std::pair<size_t, Iterator>, 2> groups = {};  // by has_answer: how many, the oldest
    for (Iterator it = connections_.begin(); it != connections_.end(); ++it) {
      if (peer.has_value() && it->peer() != *peer) continue;
      auto& [count, oldest] = groups[it->has_answer()];
      if (count++ == 0) oldest = it;
    }
    if (groups[0].first + groups[1].first < most) return;
    connections_.erase(groups[groups[1].first > groups[0].first].second);
  }

  const Pages pages_;
  std::string address_;
  Socket listening_{kNoSocket};
  std::list<HttpConnection> connections_;  // of thread_; oldest first
  std::atomic<bool> stopping_ = false;
  std::thread thread_;  // declared last: it uses the members above
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Listen(const std::string& address,
                                                                   Pages pages) {
  auto endpoint = std::make_unique<PollingEndpoint>(std::move(pages));
  if (endpoint->Start(address)) return endpoint;
  return absl::UnavailableError(absl::StrCat("The server cannot listen at ", address,
                                             " (--metrics_address): the address is not "
                                             "local, or is in use."));
}

}  // namespace opmill
