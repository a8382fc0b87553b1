// One HTTP request, from its header to the answer. Without a transport.
#ifndef OPMILL_SERVER_HTTP_REST_CALL_H_
#define OPMILL_SERVER_HTTP_REST_CALL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "server/access/access.h"
#include "server/config/options.h"
#include "server/execution/executor.h"
#include "server/http/http_body.h"
#include "server/http/infer_json.h"
#include "server/http/routes.h"
#include "server/traces/traced_call.h"

namespace opmill {

// An error that is answered with this status, instead of that of its code.
absl::Status WithHttpStatus(absl::Status status, int http_status);

// What the calls share. All of it must outlive them.
struct RestParts {
  Access& access;
  Executor& executor;
  const Limits& limits;
  MemoryBudget& bodies;
  grpc::GenericStub& services;  // over an in-process channel
};

struct RestHeader {
  std::string verb;
  std::string target;
  // Values of fields; empty if they are not there.
  std::string authorization;
  std::string content_encoding;
  std::string accept_encoding;
  std::string json_size;  // Inference-Header-Content-Length
  std::string traceparent;
  bool is_cross_site = false;  // a page of another site made a browser send it
};

struct RestAnswer {
  int status = 200;
  std::vector<std::pair<absl::string_view, std::string>> fields;
  std::string text;                                 // the body, or its beginning
  std::vector<absl::Span<const std::byte>> binary;  // the rest of the body
  std::optional<SplitMessage> owner;                // of the rest

  size_t size() const;
};

// The calls below follow each other: Begin, Decode, Call, Answer, End. If one fails, Refuse and End
// follow. Not thread-safe, except Cancel.
class RestCall {
 public:
  // `certificate_name` is what TLS says of the caller.
  RestCall(const RestParts& parts, std::string peer, std::string certificate_name);

  // Finds the route and checks the caller, before anything else of the request is read.
  absl::Status Begin(RestHeader header);
  size_t max_body_bytes() const;
  const std::string& peer() const { return origin_.peer; }
  // Of the caller, after Begin.
  const std::shared_ptr<CallerAccount>& account();

  // The memory for a body of so many bytes, and for what it is decompressed to.
  uint64_t BytesFor(size_t body_bytes) const;
  // The memory to decode the body, in addition.
  absl::StatusOr<uint64_t> BytesToDecode(HttpBody& body);
  absl::Status Decode(HttpBody& body);

  // `done` is called once, on a thread of gRPC, possibly before this returns. The call must live
  // until then.
  void Call(std::function<void()> done);
  // May be called from Call until `done`.
  void Cancel() { context_.TryCancel(); }

  // The memory for the text of the answer.
  uint64_t BytesToAnswer() const;
  RestAnswer Answer();
  RestAnswer Refuse(const absl::Status& why);
  // The answer is sent, or cannot be.
  void End();

 private:
  void BeginTrace();
  // What was done since the last mark. A `span` of 0 is a new one.
  void Mark(absl::string_view stage, uint64_t span = 0);
  bool is_compressed() const { return !header_.content_encoding.empty(); }
  absl::Status DecodeMessage(const HttpBody& body);
  absl::StatusOr<RestAnswer> EncodeAnswer();
  std::unique_ptr<google::protobuf::Message> NewMessage(bool of_request) const;
  static RestAnswer ErrorAnswer(const grpc::Status& status);
  void Compress(RestAnswer& answer) const;

  const RestParts& parts_;
  const std::string certificate_name_;
  RequestOrigin origin_;
  RestHeader header_;
  RoutedRequest routed_;
  bool was_refused_by_access_ = false;
  size_t json_size_ = 0;
  ResultForm form_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  grpc::Status result_;
  std::unique_ptr<TracedCall> traced_;  // null if it is not traced
  absl::Time marked_at_;                // if it is
  uint64_t call_span_ = 0;              // of the stage that the gRPC call belongs to
  int http_status_ = 0;                 // of the answer
};

}  // namespace opmill

#endif  // OPMILL_SERVER_HTTP_REST_CALL_H_
