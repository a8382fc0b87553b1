#include "server/api/execute_call.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/base/errors.h"
#include "opmill/v1/service.pb.h"
#include "proto/payload.h"
#include "proto/stack_message.h"
#include "server/api/call_context.h"
#include "server/api/grpc_status.h"
#include "server/api/request_decoder.h"
#include "server/shared_memory/shared_tensors.h"

namespace opmill {
namespace {

absl::Status CheckInputs(const OperatorDesc& desc, const std::vector<IncomingChunk>& inputs) {
  if (inputs.size() != desc.inputs.size()) {
    return InvalidField("inputs",
                        absl::StrCat("inputs has ", inputs.size(), " tensors; ", OperatorName(desc),
                                     " takes ", desc.inputs.size(), "."));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint64_t bytes = inputs[i].data.size();
    const uint64_t least = SpannedBytes(desc.inputs[i]);
    if (bytes >= least && bytes <= RequiredBytes(desc.inputs[i])) continue;
    const std::string field = absl::StrCat("inputs[", i, "]");
    return InvalidField(field, absl::StrCat(field, " has ", bytes, " bytes; ",
                                            ToString(desc.inputs[i]), " takes ", least, "."));
  }
  return absl::OkStatus();
}

constexpr char kSharedInputs[] = "shared_inputs";
constexpr char kSharedOutputs[] = "shared_outputs";

using Ranges = google::protobuf::RepeatedPtrField<v1::SharedMemoryRange>;
using CheckRange = absl::Status(const TensorDesc&, const SharedRange&, absl::string_view);

absl::StatusOr<std::vector<SharedRange>> OpenRanges(const Ranges& ranges, const std::string& field,
                                                    const std::vector<TensorDesc>& tensors,
                                                    const OperatorDesc& desc,
                                                    const SharedMemory& memory, CheckRange* check) {
  if (static_cast<size_t>(ranges.size()) != tensors.size()) {
    return InvalidField(field, absl::StrCat(field, " has ", ranges.size(), " ranges; ",
                                            OperatorName(desc), " needs ", tensors.size(), "."));
  }
  std::vector<SharedRange> opened;
  for (const TensorDesc& tensor : tensors) {
    const std::string path = absl::StrCat(field, "[", opened.size(), "]");
    const v1::SharedMemoryRange& range = ranges[static_cast<int>(opened.size())];
    absl::StatusOr<SharedRange> found = memory.Open(range.key(), range.offset(), range.byte_size());
    if (!found.ok()) return UnderPath(path, found.status());
    RETURN_IF_ERROR(check(tensor, *found, path));
    opened.push_back(*std::move(found));
  }
  return opened;
}

// None if the inputs are in the message.
absl::StatusOr<std::vector<SharedRange>> OpenInputs(const Ranges& ranges,
                                                    const std::vector<IncomingChunk>& chunks,
                                                    const OperatorDesc& desc,
                                                    const SharedMemory& memory) {
  if (ranges.empty()) {
    RETURN_IF_ERROR(CheckInputs(desc, chunks));
    return std::vector<SharedRange>();
  }
  if (!chunks.empty()) {
    return InvalidField(kSharedInputs,
                        absl::StrCat(kSharedInputs, " has ", ranges.size(), " ranges, and inputs ",
                                     chunks.size(), " tensors; one of them must be empty."));
  }
  return OpenRanges(ranges, kSharedInputs, desc.inputs, desc, memory, &CheckInputRange);
}

// None if the outputs are to be sent.
absl::StatusOr<std::vector<SharedRange>> OpenOutputs(const Ranges& ranges, const OperatorDesc& desc,
                                                     const SharedMemory& memory) {
  if (ranges.empty()) return std::vector<SharedRange>();
  ASSIGN_OR_RETURN(
      std::vector<SharedRange> opened,
      OpenRanges(ranges, kSharedOutputs, OutputsOf(desc), desc, memory, &CheckOutputRange));
  for (size_t i = 1; i < opened.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!opened[i].Overlaps(opened[j])) continue;
      const std::string path = absl::StrCat(kSharedOutputs, "[", i, "]");
      return InvalidField(path, absl::StrCat(path, " overlaps ", kSharedOutputs, "[", j, "]."));
    }
  }
  return opened;
}

}  // namespace

ExecuteCall::ExecuteCall(grpc::CallbackServerContext& context, RequestOrigin origin,
                         Executor& executor, OpenCalls& open_calls,
                         const SharedMemory& shared_memory, uint64_t max_chunk_bytes)
    : context_(context),
      executor_(executor),
      open_calls_(open_calls),
      shared_memory_(shared_memory),
      max_chunk_bytes_(max_chunk_bytes),
      origin_(std::move(origin)) {
  open_calls_.Add(*this);
  StartRead(&request_);
}

void ExecuteCall::OnReadDone(bool ok) {
  if (!ok) {
    EndWithoutMessage(context_.IsCancelled() ? CallerIsGone(context_)
                                             : NotAProtobuf("ExecuteRequest"));
    return;
  }
  {
    const absl::MutexLock lock(&mutex_);
    if (!waits_for_message_) return;
    waits_for_message_ = false;
    waits_since_ = absl::InfiniteFuture();
  }
  origin_.arrived = absl::Now();
  const absl::Status begun = Execute();
  if (!begun.ok()) Finish(ToGrpcStatus(begun));
}

bool ExecuteCall::EndWithoutMessage(const absl::Status& why) {
  {
    const absl::MutexLock lock(&mutex_);
    if (!waits_for_message_) return false;
    waits_for_message_ = false;
    waits_since_ = absl::InfiniteFuture();
  }
  executor_.Refuse(origin_, nullptr, why);
  Finish(ToGrpcStatus(why));
  return true;
}

// Returns an error if the request did not become an execution.
absl::Status ExecuteCall::Execute() {
  if (origin_.connection != nullptr) origin_.connection->AddPayload(request_.Length());
  ExecutionRequest begin = {
      .origin = std::move(origin_),
      .deadline = DeadlineOf(context_),
      .on_ready = [this](const std::shared_ptr<Execution>& execution) { Ready(execution); }};
  const auto refuse = [&](const absl::Status& why, const OperatorDesc* desc = nullptr) {
    executor_.Refuse(begin.origin, desc, why);
    return why;
  };
  const absl::StatusOr<SplitMessage> split = SplitMessage::Take(request_, PayloadKind::kInputs);
  if (!split.ok()) return refuse(split.status());
  StackMessage<v1::ExecuteRequest> header;
  if (!header->ParseFromString(split->header())) return refuse(NotAProtobuf("ExecuteRequest"));
  absl::StatusOr<OperatorDesc> desc = DecodeRequest(*header);
  if (!desc.ok()) return refuse(desc.status());
  absl::StatusOr<std::vector<SharedRange>> shared_inputs =
      OpenInputs(header->shared_inputs(), split->chunks(), *desc, shared_memory_);
  if (!shared_inputs.ok()) return refuse(shared_inputs.status(), &*desc);
  absl::StatusOr<std::vector<SharedRange>> shared_outputs =
      OpenOutputs(header->shared_outputs(), *desc, shared_memory_);
  if (!shared_outputs.ok()) return refuse(shared_outputs.status(), &*desc);
  shared_outputs_ = *std::move(shared_outputs);

  begin.desc = *std::move(desc);
  absl::StatusOr<std::shared_ptr<Execution>> begun = executor_.Begin(begin);
  if (!begun.ok()) return refuse(begun.status(), &begin.desc);
  absl::Status aborted;
  {
    const absl::MutexLock lock(&mutex_);
    execution_ = *begun;
    aborted = aborted_;
  }
  if (!aborted.ok()) executor_.Cancel(*begun, aborted);
  if (!shared_inputs->empty()) {
    ReceiveShared(executor_, *begun, *std::move(shared_inputs), kSharedInputs);
  }
  for (const IncomingChunk& input : split->chunks()) {
    executor_.Receive(*begun, input, absl::StrCat("inputs[", input.tensor_index, "]"));
  }
  return absl::OkStatus();
}

void ExecuteCall::Ready(const std::shared_ptr<Execution>& execution) {
  if (shared_outputs_.empty() || !execution->status().ok()) {
    results_.emplace(execution, max_chunk_bytes_);
    WriteNext();
    return;
  }
  results_.emplace(execution, max_chunk_bytes_,
                   ResultPosition{.output = execution->outputs().size()});
  WriteShared(executor_, execution, std::move(shared_outputs_), kSharedOutputs, [this] {
    const absl::Status status = results_->execution()->status();
    if (status.ok()) {
      WriteNext();
    } else {
      Finish(ToGrpcStatus(status));
    }
  });
}

void ExecuteCall::WriteNext() {
  StackMessage<v1::ExecuteResponse> response;
  if (!results_->Next(*response, message_)) {
    Finish(ToGrpcStatus(results_->execution()->status()));
    return;
  }
  {
    const absl::MutexLock lock(&mutex_);
    waits_since_ = absl::Now();
  }
  if (results_->done()) {
    StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
  } else {
    StartWrite(&message_);
  }
}

void ExecuteCall::OnWriteDone(bool ok) {
  message_.Clear();
  {
    const absl::MutexLock lock(&mutex_);
    waits_since_ = absl::InfiniteFuture();
  }
  if (!ok) executor_.Cancel(results_->execution(), CallerIsGone(context_));
  WriteNext();
}

void ExecuteCall::Drain() { EndWithoutMessage(Draining()); }

void ExecuteCall::OnCancel() { Abort(CallerIsGone(context_)); }

void ExecuteCall::Abort(const absl::Status& why) {
  if (EndWithoutMessage(why)) return;
  std::shared_ptr<Execution> execution;
  {
    const absl::MutexLock lock(&mutex_);
    execution = execution_;
    if (aborted_.ok()) aborted_ = why;
  }
  if (execution != nullptr) executor_.Cancel(execution, why);
}

void ExecuteCall::EndIfStalled(absl::Time now, absl::Duration timeout) {
  {
    const absl::MutexLock lock(&mutex_);
    if (now - waits_since_ < timeout) return;
    // A large message on a slow network takes long. Where the server can see them, arriving bytes
    // count as progress.
    if (waits_for_message_ &&
        (origin_.connection == nullptr || now - origin_.connection->last_received_at() < timeout)) {
      return;
    }
  }
  if (EndWithoutMessage(NoMessage(timeout))) return;
  Abort(ResultsAreNotRead(timeout));
  context_.TryCancel();  // nothing else ends the write in flight
}

void ExecuteCall::OnDone() {
  message_.Clear();
  if (results_.has_value()) executor_.Finish(results_->execution());
  open_calls_.Remove(*this);
  delete this;
}

}  // namespace opmill
