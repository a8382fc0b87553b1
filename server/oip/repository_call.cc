#include "server/oip/repository_call.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "inference/grpc_service.pb.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "server/api/call_context.h"
#include "server/api/out_of_memory.h"

namespace opmill::oip {
namespace {

constexpr absl::string_view kFilePrefix = "file:";

std::string FieldOfParameter(absl::string_view parameter) {
  return absl::StrCat("parameters.", Excerpt(parameter));
}

// Frees the message.
template <typename Request>
absl::Status Parse(grpc::ByteBuffer& message, absl::string_view type, Request& to) {
  const bool is_parsed = [&] {
    grpc::ProtoBufferReader reader(&message);
    return to.ParseFromZeroCopyStream(&reader);
  }();
  message.Clear();
  if (!is_parsed) return NotAProtobuf(type);
  if (to.repository_name().empty()) return absl::OkStatus();
  return InvalidField("repository_name",
                      absl::StrCat("repository_name (\"", Excerpt(to.repository_name()),
                                   "\") is given; the server has one repository, without a name."));
}

// "file:1/model.onnx"
absl::Status AddFile(const std::string& name, inference::ModelRepositoryParameter& value,
                     ModelOverride& to) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(absl::StripPrefix(name, kFilePrefix), '/');
  uint64_t version = 0;
  const bool is_path = parts.size() == 2 && absl::SimpleAtoi(parts[0], &version) && version > 0 &&
                       absl::StrCat(version) == parts[0] && !parts[1].empty();
  if (!is_path) {
    return InvalidField(
        FieldOfParameter(name),
        absl::StrCat(FieldOfParameter(name), " is not file:VERSION/NAME, the name of a file ",
                     "in the folder of a version, which is a positive number."));
  }
  if (value.parameter_choice_case() != inference::ModelRepositoryParameter::kBytesParam) {
    return InvalidField(
        FieldOfParameter(name),
        absl::StrCat(FieldOfParameter(name), " has no bytes_param, the bytes of the file."));
  }
  to.files[version][std::string(parts[1])] = std::move(*value.mutable_bytes_param());
  return absl::OkStatus();
}

absl::StatusOr<ModelOverride> DecodeOverride(inference::RepositoryModelLoadRequest& request) {
  ModelOverride decoded;
  for (auto& [name, value] : *request.mutable_parameters()) {
    if (absl::StartsWith(name, kFilePrefix)) {
      RETURN_IF_ERROR(AddFile(name, value, decoded));
    } else if (name != "config") {
      return InvalidField(
          FieldOfParameter(name),
          absl::StrCat(FieldOfParameter(name), " is not a parameter of RepositoryModelLoad; ",
                       "its parameters are config and file:VERSION/NAME."));
    } else if (value.parameter_choice_case() == inference::ModelRepositoryParameter::kStringParam) {
      decoded.config = value.string_param();
    } else {
      return InvalidField("parameters.config",
                          "parameters.config has no string_param, the configuration as JSON.");
    }
  }
  if (!decoded.files.empty() && !decoded.config.has_value()) {
    return InvalidField("parameters.config",
                        "parameters.config is not given, which files of a request need.");
  }
  return decoded;
}

absl::Status Load(grpc::ByteBuffer& message, ModelRepository& repository) {
  inference::RepositoryModelLoadRequest request;
  RETURN_IF_ERROR(Parse(message, "RepositoryModelLoadRequest", request));
  ASSIGN_OR_RETURN(const ModelOverride override_with, DecodeOverride(request));
  return repository.Load(request.model_name(), override_with);
}

absl::Status Unload(grpc::ByteBuffer& message, ModelRepository& repository) {
  inference::RepositoryModelUnloadRequest request;
  RETURN_IF_ERROR(Parse(message, "RepositoryModelUnloadRequest", request));
  for (const auto& [name, value] : request.parameters()) {
    if (name == "unload_dependents") continue;  // no model has any
    return InvalidField(
        FieldOfParameter(name),
        absl::StrCat(FieldOfParameter(name), " is not a parameter of RepositoryModelUnload; ",
                     "its parameter is unload_dependents."));
  }
  return repository.Unload(request.model_name());
}

}  // namespace

void RepositoryCall::Receive(grpc::ByteBuffer& message) {
  absl::Status posted = repository_.CheckControl();
  if (posted.ok()) {
    {
      const absl::MutexLock lock(&turn_mutex_);
      if (!waits_) return;
      message_.Swap(&message);
    }
    AddUser();
    posted = repository_.Post([this] {
      TakeTurn();
      Release();
    });
    if (posted.ok()) return;
    Release();
  }
  Cancel(posted);
}

void RepositoryCall::Cancel(const absl::Status& why) {
  grpc::ByteBuffer message;
  if (EndWait(message)) End(why);
}

void RepositoryCall::TakeTurn() {
  grpc::ByteBuffer message;
  if (!EndWait(message)) return;
  End(CatchOutOfMemory([&] {
    return kind_ == Kind::kLoad ? Load(message, repository_) : Unload(message, repository_);
  }));
}

bool RepositoryCall::EndWait(grpc::ByteBuffer& message) {
  const absl::MutexLock lock(&turn_mutex_);
  message.Swap(&message_);
  return std::exchange(waits_, false);
}

void RepositoryCall::End(const absl::Status& status) {
  if (!status.ok()) {
    Refuse(origin(), nullptr, status);
    return;
  }
  LogAnswer(parts(), origin(), status);
  const grpc::Slice empty;
  Answer(grpc::ByteBuffer(&empty, 1));  // a message; gRPC takes none without slices
}

}  // namespace opmill::oip
