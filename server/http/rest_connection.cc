#include "server/http/rest_connection.h"

#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Phase = RestProgress::Phase;
template <typename T = void>
using Task = asio::awaitable<T>;

constexpr uint32_t kMostHeaderBytes = 16 << 10;
constexpr size_t kReadBytes = 16 << 10;
// The most that is read ahead while a request runs: the next requests of the connection.
constexpr size_t kMostAhead = 64 << 10;
constexpr std::chrono::seconds kHandshakeTime(5);
constexpr std::chrono::seconds kHeaderTime(10);
constexpr std::chrono::minutes kIdleTime(5);
// How long an answer to a request that was not read to its end can be read.
constexpr std::chrono::seconds kLingerTime(2);
constexpr size_t kMostLingerBytes = size_t{8} << 20;
// Bodies up to this size take no part in the memory for bodies: connections are few enough.
constexpr uint64_t kFreeBytes = uint64_t{64} << 10;
// What a body of unknown size takes at a time.
constexpr uint64_t kStepBytes = uint64_t{4} << 20;
constexpr std::chrono::seconds kMostWaitForRoom(5);
constexpr std::chrono::milliseconds kBetweenLooksForRoom(20);
// More is decoded, encoded and compressed on threads of their own, so that other callers do not
// wait for it.
constexpr size_t kMostInlineBytes = 256 << 10;

// Set from its executor only.
class Event {
 public:
  explicit Event(const asio::any_io_executor& executor) : timer_(executor) {}

  void Set() {
    is_set_ = true;
    timer_.cancel();
  }
  // Resets it. False if it was not set within the time.
  Task<bool> Wait(Clock::duration most) {
    if (!is_set_) {
      error_code cancelled;
      timer_.expires_after(most);
      co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
    co_return std::exchange(is_set_, false);
  }

  Task<> WaitUntilSet() {
    bool is_set = false;
    while (!is_set) is_set = co_await Wait(kIdleTime);
  }

 private:
  asio::steady_timer timer_;
  bool is_set_ = false;
};

Clock::duration ToChrono(absl::Duration duration) {
  return absl::ToChronoNanoseconds(std::min(duration, absl::Hours(24)));
}

// As gRPC does: the first alternative name of the certificate, else its common name.
std::string NameOf(X509& certificate) {
  auto* const names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr));
  std::string name;
  if (names != nullptr && sk_GENERAL_NAME_num(names) > 0) {
    const GENERAL_NAME* const first = sk_GENERAL_NAME_value(names, 0);
    if (first->type == GEN_DNS || first->type == GEN_URI || first->type == GEN_EMAIL) {
      const ASN1_STRING* const text = first->d.ia5;
      name.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                  static_cast<size_t>(ASN1_STRING_length(text)));
    }
  }
  GENERAL_NAMES_free(names);
  if (!name.empty()) return name;
  std::array<char, 256> common_name = {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(&certificate), NID_commonName, common_name.data(),
                            static_cast<int>(common_name.size()));
  return common_name.data();
}

absl::Status Malformed(const error_code& error) {
  if (error == http::error::header_limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The header of the request is longer than ", kMostHeaderBytes, " bytes."));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("The request is not HTTP/1.1: ", error.message(), "."));
}

absl::Status TooLarge(uint64_t most) {
  return WithHttpStatus(
      absl::ResourceExhaustedError(
          absl::StrCat("The body of the request has more than ", most,
                       " bytes (max_message_bytes, or the limit of messages without tensors).")),
      413);
}

absl::Status TooSlow(absl::string_view what, Clock::duration time) {
  return WithHttpStatus(absl::DeadlineExceededError(absl::StrCat(
                            what, " within ", absl::FormatDuration(absl::FromChrono(time)), ".")),
                        408);
}

// gcc 12 destroys what co_await needs too early in conditions and operands of && and ?:, so awaited
// values have names of their own here.
using Parser = http::request_parser<http::buffer_body>;

// The value of a field; an error if it comes twice, because proxies do not agree on which counts.
absl::Status ReadField(const Parser& parser, absl::string_view name, std::string& to) {
  const auto& fields = parser.get();
  const beast::string_view key(name.data(), name.size());
  if (fields.count(key) > 1) {
    return InvalidField(name, absl::StrCat("The field ", name, " of the header is given twice."));
  }
  const auto value = fields[key];
  to.assign(value.data(), value.size());
  return absl::OkStatus();
}

// One connection. Everything runs in its strand, except what says otherwise.
class RestConnection final : public RestConnections::Member,
                             public OpenCalls::Call,
                             public std::enable_shared_from_this<RestConnection> {
 public:
  // `tls` is null for clear text.
  RestConnection(RestShared& shared, std::string address, std::string peer, tcp::socket socket,
                 std::shared_ptr<asio::ssl::context> tls)
      : Member(std::move(address)),
        shared_(shared),
        peer_(std::move(peer)),
        socket_(std::move(socket)),
        context_(std::move(tls)),
        arrived_(socket_.get_executor()),
        worked_(socket_.get_executor()) {
    if (context_ != nullptr) tls_.emplace(socket_, *context_);
  }

  ~RestConnection() override { shared_.connections.Remove(*this); }

  // Serves until the connection is over.
  void Start() {
    asio::co_spawn(
        socket_.get_executor(), [self = shared_from_this()]() -> Task<> { co_await self->Run(); },
        asio::detached);
  }

  // These four may be called by any thread.
  void Close() override {
    Post([](RestConnection& self) { self.CloseNow(); });
  }
  void Drain() override {
    Post([](RestConnection& self) {
      self.is_draining_ = true;
      self.arrived_.Set();
    });
  }
  void Abort(const absl::Status&) override {  // its call in the services ends with the error
    if (progress().phase() != Phase::kRunning) Close();
  }
  void EndIfUnread(absl::Time now, const OpenCalls::MayEnd& may_end) override {
    if (progress().IsSlow(Phase::kSending, now) && may_end(*account_)) Close();
  }

 private:
  template <typename Function>
  void Post(Function function) {
    asio::post(socket_.get_executor(), [weak = weak_from_this(), function = std::move(function)] {
      if (const auto self = weak.lock()) function(*self);
    });
  }

  template <typename Buffers, typename Token>
  auto AsyncRead(const Buffers& buffers, Token&& token) {
    return tls_.has_value() ? tls_->async_read_some(buffers, std::forward<Token>(token))
                            : socket_.async_read_some(buffers, std::forward<Token>(token));
  }
  template <typename Buffers, typename Token>
  auto AsyncWrite(const Buffers& buffers, Token&& token) {
    return tls_.has_value() ? tls_->async_write_some(buffers, std::forward<Token>(token))
                            : socket_.async_write_some(buffers, std::forward<Token>(token));
  }

  void CloseNow() {
    is_closed_ = true;
    error_code ignored;
    socket_.socket().close(ignored);
    if (call_ != nullptr) call_->Cancel();
    arrived_.Set();
  }

  Task<> Run() {
    try {
      if (tls_.has_value()) {
        error_code error;
        socket_.expires_after(kHandshakeTime);
        co_await tls_->async_handshake(asio::ssl::stream_base::server,
                                       asio::redirect_error(asio::use_awaitable, error));
        if (error) co_return;
        if (X509* const certificate = SSL_get_peer_certificate(tls_->native_handle())) {
          certificate_name_ = NameOf(*certificate);
          X509_free(certificate);
        }
      }
      bool continues = true;
      while (continues && !is_closed_) continues = co_await ServeOne();
      if (!is_closed_ && !is_gone_) co_await Linger();
    } catch (const std::bad_alloc&) {  // only this connection ends
    }
    CloseNow();
  }

  // False after the last request.
  Task<bool> ServeOne() {
    progress().Enter(Phase::kIdle);
    Parser parser;
    parser.header_limit(kMostHeaderBytes);
    parser.body_limit(std::numeric_limits<uint64_t>::max());  // max_body_bytes is checked here
    const absl::Status header_read = co_await ReadHeader(parser);
    if (is_gone_ || is_closed_) co_return false;
    const auto call = std::make_shared<RestCall>(shared_.call_parts, peer_, certificate_name_);
    progress().Enter(Phase::kReceiving);
    RestAnswer answer;
    HttpBody answer_room;  // holds the memory of the answer until it is sent
    absl::Status status = header_read;
    RestHeader header;
    if (status.ok()) status = FieldsOf(parser, header);
    const bool is_clear = status.ok();
    const bool is_head = header.verb == "HEAD";
    if (status.ok()) status = call->Begin(std::move(header));
    account_ = call->account();
    shared_.parts.open_calls.Add(*this);
    const absl::Cleanup removed = [this] { shared_.parts.open_calls.Remove(*this); };
    const absl::Cleanup ended = [&call] { call->End(); };
    HttpBody body;
    if (status.ok()) status = co_await ReadBody(*call, parser, body);
    // What follows a body that was not read is not a request.
    const bool is_in_step = status.ok() || (is_clear && !HasBody(parser));
    progress().Enter(Phase::kRunning);
    if (status.ok()) status = co_await Decode(*call, body);
    if (is_gone_ || is_closed_) co_return false;
    if (status.ok()) {
      co_await RunCall(call);
      if (is_gone_ || is_closed_) co_return false;
      status = co_await AwaitRoom(*call, call->BytesToAnswer(), answer_room);
    }
    if (status.ok()) {
      co_await Work(call->BytesToAnswer() > kMostInlineBytes, [&] { answer = call->Answer(); });
    } else {
      answer = call->Refuse(status);
    }
    const bool keeps =
        is_in_step && parser.keep_alive() && parser.get().version() >= 11 && !is_draining_;
    progress().Enter(Phase::kSending);
    const bool is_written = co_await Write(answer, is_head, keeps);
    co_return is_written&& keeps;
  }

  // Of a request whose header is complete.
  static bool HasBody(const Parser& parser) {
    return parser.chunked() || parser.content_length().value_or(0) > 0;
  }

  static absl::Status FieldsOf(const Parser& parser, RestHeader& to) {
    const auto& request = parser.get();
    to.verb = std::string(request.method_string());
    to.target = std::string(request.target());
    for (const auto& [name, value] : {std::pair{"Authorization", &to.authorization},
                                      {"Content-Encoding", &to.content_encoding},
                                      {"Accept-Encoding", &to.accept_encoding},
                                      {"Inference-Header-Content-Length", &to.json_size},
                                      {"Traceparent", &to.traceparent}}) {
      RETURN_IF_ERROR(ReadField(parser, name, *value));
    }
    std::string site;
    RETURN_IF_ERROR(ReadField(parser, "Sec-Fetch-Site", site));
    to.is_cross_site = request.count(http::field::origin) > 0 ||
                       !(site.empty() || site == "none" || site == "same-origin");
    std::string encoding;
    RETURN_IF_ERROR(ReadField(parser, "Transfer-Encoding", encoding));
    if (encoding.empty() || absl::EqualsIgnoreCase(encoding, "chunked")) return absl::OkStatus();
    return absl::UnimplementedError("The only Transfer-Encoding of this server is chunked.");
  }

  // Reads what comes next, if that is not being done.
  void StartRead() {
    if (is_reading_ || is_gone_ || buffer_.size() >= kMostAhead) return;
    is_reading_ = true;
    socket_.expires_never();
    AsyncRead(asio::buffer(incoming_),
              [self = shared_from_this()](const error_code& error, size_t count) {
                self->is_reading_ = false;
                beast::flat_buffer& to = self->buffer_;
                to.commit(asio::buffer_copy(to.prepare(count), asio::buffer(self->incoming_)));
                self->is_gone_ = self->is_gone_ || error;
                if (error && self->call_ != nullptr) self->call_->Cancel();
                self->arrived_.Set();
              });
  }

  // False at the deadline. Otherwise there are more bytes, or a flag says why not.
  Task<bool> ReadMore(Clock::time_point deadline) {
    StartRead();
    while (is_reading_ && !is_closed_ && !is_draining_) {
      const bool is_in_time = co_await arrived_.Wait(deadline - Clock::now());
      if (!is_in_time) co_return false;
    }
    co_return true;
  }

  Task<absl::Status> ReadHeader(Parser& parser) {
    Clock::time_point deadline = Clock::now() + kIdleTime;
    bool has_begun = false;
    for (;;) {
      if (buffer_.size() > 0) {
        if (!has_begun) deadline = Clock::now() + kHeaderTime;
        has_begun = true;
        error_code error;
        buffer_.consume(parser.put(buffer_.data(), error));
        if (parser.is_header_done()) co_return absl::OkStatus();
        if (error && error != http::error::need_more) {
          absl::Status status = Malformed(error);
          co_return absl::IsResourceExhausted(status) ? WithHttpStatus(std::move(status), 431)
                                                      : status;
        }
      }
      const bool is_in_time = co_await ReadMore(deadline);
      if (is_gone_ || is_closed_) co_return absl::OkStatus();
      if (is_in_time && !is_draining_) continue;
      if (!has_begun) {
        is_closed_ = true;
        co_return absl::OkStatus();
      }
      co_return is_draining_ ? Draining()
                             : TooSlow("The header of the request did not arrive", kHeaderTime);
    }
  }

  Task<absl::Status> ReadBody(RestCall& call, Parser& parser, HttpBody& body) {
    const uint64_t most = call.max_body_bytes();
    const auto length = parser.content_length();
    if (length.has_value() && *length > most) co_return TooLarge(most);
    if (!HasBody(parser)) co_return absl::OkStatus();
    if (length.has_value()) {
      const absl::Status has_room = co_await AwaitRoom(call, call.BytesFor(*length), body);
      if (!has_room.ok()) co_return has_room;
      progress().Enter(Phase::kReceiving);
    }
    if (buffer_.size() == 0 && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      static constexpr absl::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      error_code error;
      socket_.expires_after(kHeaderTime);
      co_await AsyncWrite(asio::buffer(kContinue.data(), kContinue.size()),
                          asio::redirect_error(asio::use_awaitable, error));
    }
    absl::Status status;
    if (length.has_value()) {
      status = co_await ReadBytes(body, *length);
    } else {
      status = co_await ReadChunks(call, parser, most, body);
    }
    co_return status;
  }

  // Straight from the socket to the blocks of the body.
  Task<absl::Status> ReadBytes(HttpBody& body, uint64_t length) {
    const Clock::duration patience = ToChrono(shared_.parts.limits.stall_timeout);
    while (body.size() < length) {
      const size_t left = length - body.size();
      if (buffer_.size() > 0 || is_reading_) {  // what was read ahead comes first
        const size_t ahead = std::min(buffer_.size(), left);
        body.Append({static_cast<const char*>(buffer_.data().data()), ahead});
        buffer_.consume(ahead);
        if (ahead == left || !is_reading_) continue;
        const bool is_in_time = co_await ReadMore(Clock::now() + patience);
        if (!is_in_time) co_return Stalled();
        if (is_draining_) co_return Draining();
        if (is_gone_ || is_closed_) co_return absl::CancelledError("The caller is gone.");
        continue;
      }
      absl::Span<char> room = body.Prepare(left);
      room = room.first(std::min(room.size(), left));
      const bool is_in_time = co_await ReadInto(room, Clock::now() + patience, body);
      if (is_draining_ && body.size() < length) co_return Draining();
      if (is_gone_ || is_closed_) co_return absl::CancelledError("The caller is gone.");
      if (!is_in_time) co_return Stalled();
    }
    co_return absl::OkStatus();
  }

  // Straight into the room, which Prepare has returned. False at the deadline.
  Task<bool> ReadInto(absl::Span<char> room, Clock::time_point deadline, HttpBody& body) {
    is_reading_ = true;
    socket_.expires_never();  // after which it would close the connection, without an answer
    AsyncRead(asio::buffer(room.data(), room.size()),
              [this, self = shared_from_this(), &body](const error_code& error, size_t count) {
                is_reading_ = false;
                is_gone_ = is_gone_ || (error && error != asio::error::operation_aborted);
                body.Commit(count);
                progress().Add(count);
                arrived_.Set();
              });
    bool is_in_time = true;
    while (is_reading_) {
      const bool has_arrived = co_await arrived_.Wait(deadline - Clock::now());
      if (!is_reading_ || (has_arrived && !is_closed_ && !is_draining_)) continue;
      is_in_time = has_arrived;
      deadline = Clock::time_point::max() - kIdleTime;
      socket_.cancel();
    }
    co_return is_in_time;
  }

  Task<absl::Status> ReadChunks(RestCall& call, Parser& parser, uint64_t most, HttpBody& body) {
    parser.eager(true);
    uint64_t reserved = 0;
    while (!parser.is_done()) {
      if (body.size() > most) co_return TooLarge(most);
      if (body.size() >= reserved) {
        // The steps are those of callers who send much; a compressed body may be its expansion.
        const uint64_t step = std::min(kStepBytes, most);
        const absl::Status has_room = co_await AwaitRoom(call, call.BytesFor(step), body);
        if (!has_room.ok()) co_return has_room;
        progress().Enter(Phase::kReceiving);
        reserved += step;
      }
      const absl::Span<char> room = body.Prepare(HttpBody::kBlockBytes / 16);
      auto& target = parser.get().body();
      target.data = room.data();
      target.size = room.size();
      error_code error;
      const size_t used = parser.put(buffer_.data(), error);
      buffer_.consume(used);
      body.Commit(room.size() - target.size);
      progress().Add(used);
      if (error == http::error::need_buffer || parser.is_done()) continue;
      if (error && error != http::error::need_more) co_return Malformed(error);
      if (used > 0 && buffer_.size() > 0) continue;
      const Clock::duration patience = ToChrono(shared_.parts.limits.stall_timeout);
      const bool is_in_time = co_await ReadMore(Clock::now() + patience);
      if (!is_in_time) co_return Stalled();
      if (is_draining_) co_return Draining();
      if (is_gone_ || is_closed_) co_return absl::CancelledError("The caller is gone.");
    }
    co_return absl::OkStatus();
  }

  absl::Status Stalled() const {
    return TooSlow("The body of the request did not arrive: no part of it came",
                   ToChrono(shared_.parts.limits.stall_timeout));
  }

  // Takes memory for a part of the body, or of its decoded form. Callers that are too slow to keep
  // theirs are closed for it.
  Task<absl::Status> AwaitRoom(RestCall& call, uint64_t bytes, HttpBody& body) {
    if (bytes <= kFreeBytes) co_return absl::OkStatus();
    const std::shared_ptr<CallerAccount> account = call.account();
    const std::shared_ptr<Holding> holding(account, &account->bodies);
    const Clock::time_point deadline = Clock::now() + kMostWaitForRoom;
    for (;;) {
      absl::StatusOr<MemoryBudget::Share> share = shared_.bodies.Take(
          bytes, holding, shared_.bodies.shared().LimitFor(*holding, bytes, true));
      if (share.ok()) {
        body.SetShare(std::make_shared<MemoryBudget::Share>(*std::move(share)));
        co_return absl::OkStatus();
      }
      if (Clock::now() >= deadline || is_draining_) co_return share.status();
      // While it waits itself, it is not slow.
      if (progress().phase() != Phase::kRunning) progress().Enter(Phase::kRunning);
      shared_.connections.CloseSlow();
      error_code cancelled;
      asio::steady_timer pause(socket_.get_executor(), kBetweenLooksForRoom);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
  }

  // Runs it here, or if it is heavy on another thread.
  template <typename Function>
  Task<> Work(bool is_heavy, Function function) {
    if (!is_heavy) {
      function();
      co_return;
    }
    shared_.heavy.Post([this, self = shared_from_this(), &function] {
      function();
      asio::post(socket_.get_executor(), [self] { self->worked_.Set(); });
    });
    co_await worked_.WaitUntilSet();
  }

  Task<absl::Status> Decode(RestCall& call, HttpBody& body) {
    absl::StatusOr<uint64_t> bytes = uint64_t{0};
    const bool is_heavy = body.size() > kMostInlineBytes;
    co_await Work(is_heavy, [&] { bytes = call.BytesToDecode(body); });
    if (!bytes.ok()) co_return bytes.status();
    HttpBody decoded;  // holds the memory until this returns
    absl::Status status = co_await AwaitRoom(call, *bytes, decoded);
    if (!status.ok()) co_return status;
    co_await Work(*bytes > kMostInlineBytes, [&] { status = call.Decode(body); });
    body.Clear();
    co_return status;
  }

  Task<> RunCall(std::shared_ptr<RestCall> call) {
    call_ = call;
    call->Call([self = shared_from_this(), call] {
      asio::post(self->socket_.get_executor(), [self] { self->worked_.Set(); });
    });
    StartRead();  // notices that the caller goes away
    co_await worked_.WaitUntilSet();
    call_.reset();
  }

  Task<bool> Write(const RestAnswer& answer, bool is_head, bool keeps) {
    ++shared_.requests;
    if (answer.status >= 400) ++shared_.failed_requests;
    const auto phrase = http::obsolete_reason(http::int_to_status(answer.status));
    std::string header = absl::StrCat("HTTP/1.1 ", answer.status, " ",
                                      absl::string_view(phrase.data(), phrase.size()),
                                      "\r\nContent-Length: ", answer.size(), "\r\n");
    for (const auto& [name, value] : answer.fields) {
      absl::StrAppend(&header, name, ": ", value, "\r\n");
    }
    absl::StrAppend(&header, keeps ? "" : "Connection: close\r\n", "\r\n");
    std::vector<asio::const_buffer> parts = {asio::buffer(header)};
    if (!is_head) {
      parts.push_back(asio::buffer(answer.text));
      for (const absl::Span<const std::byte> part : answer.binary) {
        parts.push_back(asio::buffer(part.data(), part.size()));
      }
    }
    beast::buffers_suffix<std::vector<asio::const_buffer>> left(parts);
    while (beast::buffer_bytes(left) > 0) {
      error_code error;
      socket_.expires_after(ToChrono(shared_.parts.limits.stall_timeout));
      const size_t count =
          co_await AsyncWrite(left, asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return false;
      progress().Add(count);
      left.consume(count);
    }
    co_return true;
  }

  // Closing first would discard the answer if the caller is still sending.
  Task<> Linger() {
    error_code error;
    socket_.socket().shutdown(tcp::socket::shutdown_send, error);
    const Clock::time_point deadline = Clock::now() + kLingerTime;
    for (size_t read = 0; !error && read < kMostLingerBytes && !is_gone_ && !is_closed_;) {
      read += buffer_.size();
      buffer_.clear();
      StartRead();
      const bool is_in_time = co_await arrived_.Wait(deadline - Clock::now());
      if (!is_in_time) co_return;
    }
  }

  RestShared& shared_;
  const std::string peer_;
  std::string certificate_name_;
  beast::tcp_stream socket_;
  const std::shared_ptr<asio::ssl::context> context_;
  std::optional<asio::ssl::stream<beast::tcp_stream&>> tls_;
  std::array<char, kReadBytes> incoming_;
  beast::flat_buffer buffer_;  // has arrived, and is not used yet
  Event arrived_;              // bytes in buffer_, or a change of the flags
  Event worked_;
  std::shared_ptr<CallerAccount> account_;  // of the request
  std::shared_ptr<RestCall> call_;          // while it runs
  bool is_reading_ = false;
  bool is_gone_ = false;    // the caller
  bool is_closed_ = false;  // by the server
  bool is_draining_ = false;
};

}  // namespace

void ServeConnection(RestShared& shared, std::string peer, tcp::socket socket,
                     std::shared_ptr<asio::ssl::context> tls) {
  std::string address = peer.substr(0, peer.rfind(':'));
  const auto connection = std::make_shared<RestConnection>(
      shared, std::move(address), std::move(peer), std::move(socket), std::move(tls));
  if (shared.connections.Admit(*connection)) connection->Start();
}

}  // namespace opmill
