#include "client/health.h"

#include <utility>
#include <vector>

#include "client/error.h"
#include "client/grpc_conversions.h"
#include "google/protobuf/wrappers.pb.h"
#include "grpcpp/grpcpp.h"

namespace opmill {
namespace {

constexpr char kCheckMethod[] = "/grpc.health.v1.Health/Check";

}  // namespace

// Request and response have one field with number 1, a string and an enumeration, and are thus
// encoded like StringValue and Int32Value. Generated code for health.proto would abort a process
// that links another copy of it.
absl::StatusOr<std::string> CheckHealth(grpc::GenericStub& stub, absl::string_view service,
                                        absl::Duration timeout, const std::string& token) {
  google::protobuf::StringValue request;
  request.set_value(std::string(service));
  const grpc::Slice request_slice(request.SerializeAsString());
  const grpc::ByteBuffer request_bytes(&request_slice, 1);

  grpc::ClientContext context;
  Prepare(context, timeout, token);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, kCheckMethod, request_bytes, &queue);
  call->StartCall();
  grpc::ByteBuffer response_bytes;
  grpc::Status status;
  call->Finish(&response_bytes, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) return FromGrpcStatus(status);

  std::string text;
  std::vector<grpc::Slice> slices;
  if (response_bytes.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) {
      text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }
  google::protobuf::Int32Value response;
  if (!response.ParseFromString(text)) {
    return absl::InternalError("The server sent a message that is not a HealthCheckResponse.");
  }
  switch (response.value()) {
    case 1:
      return "SERVING";
    case 2:
      return "NOT_SERVING";
    case 3:
      return "SERVICE_UNKNOWN";
    default:
      return "UNKNOWN";
  }
}

}  // namespace opmill
