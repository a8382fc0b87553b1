// The paths of the Open Inference Protocol over HTTP, and the methods of its gRPC service that
// answer them.
#ifndef OPMILL_SERVER_HTTP_ROUTES_H_
#define OPMILL_SERVER_HTTP_ROUTES_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace opmill {

// What an answer consists of.
enum class AnswerKind {
  kMessage,    // the response, or its field `answer_field`
  kNothing,    // no body
  kReadiness,  // the response; the status too says whether its first field is true
  kInfer,      // the result of an inference
};

struct Route {
  const char* verb;
  // {model}, {version} and {region} are for any text.
  const char* path;
  const char* rpc;         // of inference.GRPCInferenceService
  const char* name_field;  // of the request, for the model or the region; null if there is none
  AnswerKind answer = AnswerKind::kMessage;
  const char* answer_field = nullptr;
  bool takes_large_body = false;
  bool is_open = false;  // to callers without a token
};

struct RoutedRequest {
  const Route* route = nullptr;
  std::string name;
  std::string version;
};

// NotFound if there is no such path, and Unimplemented if the path has other verbs.
absl::StatusOr<RoutedRequest> FindRoute(absl::string_view verb, absl::string_view target);

}  // namespace opmill

#endif  // OPMILL_SERVER_HTTP_ROUTES_H_
