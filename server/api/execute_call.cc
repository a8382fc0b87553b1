#include "server/api/execute_call.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "opmill/v1/service.pb.h"
#include "proto/stack_message.h"
#include "server/api/call_context.h"
#include "server/api/grpc_status.h"
#include "server/api/request_decoder.h"

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

absl::StatusOr<std::vector<SharedTensor>> OpenRanges(const Ranges& ranges, const std::string& field,
                                                     const std::vector<TensorDesc>& tensors,
                                                     const OperatorDesc& desc,
                                                     const SharedMemory& memory,
                                                     const RequestOrigin& origin,
                                                     CheckRange* check) {
  if (static_cast<size_t>(ranges.size()) != tensors.size()) {
    return InvalidField(field, absl::StrCat(field, " has ", ranges.size(), " ranges; ",
                                            OperatorName(desc), " needs ", tensors.size(), "."));
  }
  const SharedMemoryCaller caller = SharedMemoryCallerOf(origin);
  std::vector<SharedTensor> opened;
  for (const TensorDesc& tensor : tensors) {
    const std::string path = absl::StrCat(field, "[", opened.size(), "]");
    const v1::SharedMemoryRange& range = ranges[static_cast<int>(opened.size())];
    absl::StatusOr<SharedRange> found =
        memory.Open(caller, range.key(), range.offset(), range.byte_size());
    if (!found.ok()) return UnderPath(path, found.status());
    RETURN_IF_ERROR(check(tensor, *found, absl::StrCat(path, ".byte_size")));
    opened.push_back({opened.size(), *std::move(found), path});
  }
  return opened;
}

// None if the inputs are in the message.
absl::StatusOr<std::vector<SharedTensor>> OpenInputs(const Ranges& ranges,
                                                     const std::vector<IncomingChunk>& chunks,
                                                     const OperatorDesc& desc,
                                                     const SharedMemory& memory,
                                                     const RequestOrigin& origin) {
  if (ranges.empty()) {
    RETURN_IF_ERROR(CheckInputs(desc, chunks));
    return std::vector<SharedTensor>();
  }
  if (!chunks.empty()) {
    return InvalidField(kSharedInputs,
                        absl::StrCat(kSharedInputs, " has ", ranges.size(), " ranges, and inputs ",
                                     chunks.size(), " tensors; one of them must be empty."));
  }
  return OpenRanges(ranges, kSharedInputs, desc.inputs, desc, memory, origin, &CheckInputRange);
}

// None if the outputs are to be sent.
absl::StatusOr<std::vector<SharedTensor>> OpenOutputs(const Ranges& ranges,
                                                      const OperatorDesc& desc,
                                                      const SharedMemory& memory,
                                                      const RequestOrigin& origin) {
  if (ranges.empty()) return std::vector<SharedTensor>();
  ASSIGN_OR_RETURN(
      std::vector<SharedTensor> opened,
      OpenRanges(ranges, kSharedOutputs, OutputsOf(desc), desc, memory, origin, &CheckOutputRange));
  RETURN_IF_ERROR(CheckNoOverlap(opened));
  return opened;
}

}  // namespace

absl::Status ExecuteCall::Decode(grpc::ByteBuffer& message, ExecutionRequest& begin) {
  ASSIGN_OR_RETURN(request_, SplitMessage::Take(message, PayloadKind::kInputs));
  StackMessage<v1::ExecuteRequest> header;
  if (!header->ParseFromString(request_->header())) return NotAProtobuf(message_type());
  ASSIGN_OR_RETURN(begin.desc, DecodeRequest(*header));
  begin.priority = header->priority();
  ASSIGN_OR_RETURN(shared_inputs_, OpenInputs(header->shared_inputs(), request_->chunks(),
                                              begin.desc, shared_memory_, begin.origin));
  begin.input_is_shared = !shared_inputs_.empty();
  ASSIGN_OR_RETURN(shared_outputs_,
                   OpenOutputs(header->shared_outputs(), begin.desc, shared_memory_, begin.origin));
  return absl::OkStatus();
}

void ExecuteCall::SendInputs(Executor& executor, const std::shared_ptr<Execution>& execution) {
  if (!shared_inputs_.empty()) {
    ReceiveShared(executor, execution, std::move(shared_inputs_));
  }
  for (const IncomingChunk& input : request_->chunks()) {
    executor.Receive(execution, input, absl::StrCat("inputs[", input.tensor_index, "]"));
  }
  request_.reset();
}

void ExecuteCall::Prepare(Executor& executor, const std::shared_ptr<Execution>& execution,
                          const std::function<void()>& respond) {
  if (shared_outputs_.empty() || !execution->status().ok()) {
    respond();
    return;
  }
  results_.emplace(execution, max_chunk_bytes_,
                   ResultPosition{.output = execution->outputs().size()});
  WriteShared(executor, execution, std::move(shared_outputs_), respond);
}

ExecuteCall::Written ExecuteCall::WriteResponse(const std::shared_ptr<Execution>& execution,
                                                grpc::ByteBuffer& message) {
  // With outputs in shared memory nothing is left to send, which would look like success.
  if (!execution->status().ok()) return Written::kError;
  if (!results_.has_value()) results_.emplace(execution, max_chunk_bytes_);
  StackMessage<v1::ExecuteResponse> response;
  if (!results_->Next(*response, message)) return Written::kError;
  return results_->done() ? Written::kLast : Written::kMore;
}

}  // namespace opmill
