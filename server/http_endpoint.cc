#include "server/http_endpoint.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "civetweb.h"

namespace opmill {
namespace {

// A caller who is slow holds one of the threads for as long as this.
constexpr char kTimeoutMilliseconds[] = "5000";
constexpr char kThreads[] = "4";

const char* Phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Service Unavailable";
  }
}

int Silent(const mg_connection*, const char*) { return 1; }

}  // namespace

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Listen(const std::string& address,
                                                                   Pages pages) {
  std::unique_ptr<HttpEndpoint> endpoint(new HttpEndpoint(std::move(pages)));
  mg_callbacks callbacks = {};
  callbacks.begin_request = &OnRequest;
  callbacks.log_message = &Silent;
  const char* options[] = {"listening_ports",    address.c_str(),      "num_threads", kThreads,
                           "request_timeout_ms", kTimeoutMilliseconds, nullptr};
  endpoint->context_ = mg_start(&callbacks, endpoint.get(), options);
  mg_server_port port = {};
  if (endpoint->context_ == nullptr || mg_get_server_ports(endpoint->context_, 1, &port) < 1) {
    return absl::UnavailableError(absl::StrCat("The server cannot listen at ", address,
                                               " (--metrics_address): not this machine's, or "
                                               "taken."));
  }
  endpoint->address_ = absl::EndsWith(address, ":0")
                           ? absl::StrCat(absl::StripSuffix(address, "0"), port.port)
                           : address;
  return endpoint;
}

HttpEndpoint::~HttpEndpoint() {
  if (context_ != nullptr) mg_stop(context_);
}

HttpEndpoint::Answer HttpEndpoint::Make(absl::string_view method, absl::string_view path) const {
  const auto page = pages_.find(std::string(path));
  if (page == pages_.end()) return {.status = 404, .body = "There is no such page.\n"};
  if (method != "GET" && method != "HEAD") return {.status = 405, .body = "GET alone.\n"};
  return page->second();
}

int HttpEndpoint::OnRequest(mg_connection* connection) {
  const mg_request_info& request = *mg_get_request_info(connection);
  const absl::string_view method = request.request_method;
  const Answer answer =
      static_cast<HttpEndpoint*>(request.user_data)->Make(method, request.local_uri);
  std::string text = absl::StrCat("HTTP/1.1 ", answer.status, " ", Phrase(answer.status),
                                  "\r\nContent-Type: ", answer.content_type,
                                  "\r\nContent-Length: ", answer.body.size(),
                                  "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n");
  if (method != "HEAD") text += answer.body;
  mg_write(connection, text.data(), text.size());
  return answer.status;
}

}  // namespace opmill
