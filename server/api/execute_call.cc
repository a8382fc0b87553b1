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
#include "server/api/out_of_memory.h"

namespace opmill {
namespace {

absl::Status CheckSent(const TensorDesc& input, const IncomingChunk& sent, size_t position) {
  const uint64_t bytes = sent.data.size();
  const uint64_t least = SpannedBytes(input);
  if (bytes >= least && bytes <= RequiredBytes(input)) return absl::OkStatus();
  const std::string field = absl::StrCat("inputs[", position, "]");
  return InvalidField(field, absl::StrCat(field, " has ", bytes, " bytes; ", ToString(input),
                                          " takes ", least, "."));
}

constexpr char kSharedInputs[] = "shared_inputs";
constexpr char kSharedOutputs[] = "shared_outputs";

using Ranges = google::protobuf::RepeatedPtrField<v1::SharedMemoryRange>;
using CheckRange = absl::Status(const TensorDesc&, const SharedRange&, absl::string_view);

absl::string_view NameOf(const ExecutionRequest& request) {
  if (request.model == nullptr) return OperatorName(*request.desc());
  return request.model->model->name;
}

absl::Status CheckCount(const Ranges& ranges, absl::string_view field, size_t tensors,
                        absl::string_view name) {
  if (static_cast<size_t>(ranges.size()) == tensors) return absl::OkStatus();
  return InvalidField(field, absl::StrCat(field, " has ", ranges.size(), " ranges; ", name,
                                          " needs ", tensors, "."));
}

absl::StatusOr<SharedTensor> OpenRange(const Ranges& ranges, absl::string_view field, size_t index,
                                       const TensorDesc& tensor, const SharedMemory& memory,
                                       const RequestOrigin& origin, CheckRange* check) {
  const std::string path = absl::StrCat(field, "[", index, "]");
  const v1::SharedMemoryRange& range = ranges[static_cast<int>(index)];
  absl::StatusOr<SharedRange> found =
      memory.Open(SharedMemoryCallerOf(origin), range.key(), range.offset(), range.byte_size());
  if (!found.ok()) return UnderPath(path, found.status());
  RETURN_IF_ERROR(check(tensor, *found, absl::StrCat(path, ".byte_size")));
  return SharedTensor{index, *std::move(found), path};
}

// Without any field.
bool IsEmpty(const Ranges& ranges, size_t index) {
  const v1::SharedMemoryRange& range = ranges[static_cast<int>(index)];
  return range.key().empty() && range.offset() == 0 && range.byte_size() == 0;
}

absl::Status StaysOnServer(const std::string& path) {
  return InvalidField(path, absl::StrCat(path, " is given, but this tensor stays on the server."));
}

absl::Status CheckSentCount(const Ranges& ranges, size_t given, size_t sent,
                            absl::string_view name) {
  if (given == sent) return absl::OkStatus();
  if (ranges.empty()) {
    return InvalidField(
        "inputs", absl::StrCat("inputs has ", given, " tensors; ", name, " takes ", sent, "."));
  }
  return InvalidField(kSharedInputs, absl::StrCat(kSharedInputs, " leaves ", sent, " of ",
                                                  ranges.size(), " tensors to inputs, which has ",
                                                  given, "; each input has one source."));
}

// None if the outputs are to be sent.
absl::StatusOr<std::vector<SharedTensor>> OpenOutputs(const Ranges& ranges,
                                                      const ExecutionRequest& begin,
                                                      const SharedMemory& memory) {
  if (ranges.empty()) return std::vector<SharedTensor>();
  const std::vector<TensorDesc> outputs = begin.OutputTensors();
  RETURN_IF_ERROR(CheckCount(ranges, kSharedOutputs, outputs.size(), NameOf(begin)));
  std::vector<SharedTensor> opened;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (begin.WritingOf(i) != nullptr) {
      if (!IsEmpty(ranges, i)) return StaysOnServer(absl::StrCat(kSharedOutputs, "[", i, "]"));
      continue;
    }
    ASSIGN_OR_RETURN(SharedTensor output, OpenRange(ranges, kSharedOutputs, i, outputs[i], memory,
                                                    begin.origin, &CheckOutputRange));
    opened.push_back(std::move(output));
  }
  RETURN_IF_ERROR(CheckNoOverlap(opened));
  return opened;
}

absl::Status HasValue(const std::string& path) {
  return InvalidField(path, absl::StrCat(path, " is given, but this input has a value."));
}

}  // namespace

absl::Status ExecuteCall::Decode(grpc::ByteBuffer& message, ExecutionRequest& begin) {
  ASSIGN_OR_RETURN(request_, SplitMessage::Take(message, PayloadKind::kInputs));
  StackMessage<v1::ExecuteRequest> header;
  if (!header->ParseFromString(request_->header())) return NotAProtobuf(message_type());
  arrived_ = begin.origin.arrived;
  begin.priority = header->priority();
  input_ranges_ = header->shared_inputs();
  output_ranges_ = header->shared_outputs();
  resident_ = ResidentFields(*header);
  const absl::Status decoded = wanted_.Decode(*header, request_->model_file(), begin);
  model_ = begin.model;
  RETURN_IF_ERROR(decoded);
  return begin.has_program() ? Complete(begin) : absl::OkStatus();
}

void ExecuteCall::MakeProgram(ExecutionRequest& begin,
                              const std::function<void(const absl::Status&)>& done) {
  wanted_.Make(parts().executor, begin, [this, &begin, done](const absl::Status& made) {
    model_ = begin.model;
    done(made.ok() ? CatchOutOfMemory([&] { return Complete(begin); }) : made);
  });
}

absl::Status ExecuteCall::Complete(ExecutionRequest& begin) {
  RETURN_IF_ERROR(DecodeResident(resident_, parts().tensors, begin));
  RETURN_IF_ERROR(DecodeSources(input_ranges_, begin));
  ASSIGN_OR_RETURN(shared_outputs_, OpenOutputs(output_ranges_, begin, parts().shared_memory));
  return absl::OkStatus();
}

absl::Status ExecuteCall::DecodeSources(const Ranges& ranges, ExecutionRequest& begin) {
  const std::vector<TensorDesc>& inputs = InputsOf(begin);
  if (!ranges.empty()) {
    RETURN_IF_ERROR(CheckCount(ranges, kSharedInputs, inputs.size(), NameOf(begin)));
    begin.sources.resize(begin.InputTensors().size());
  }
  std::vector<size_t> sent_positions;  // of the request's inputs
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint32_t place = ProgramInputOf(begin, static_cast<uint32_t>(i));
    const bool is_sent = ranges.empty() || IsEmpty(ranges, i);
    if (place == RequestedModel::kInProgram) {
      if (!is_sent) return HasValue(absl::StrCat(kSharedInputs, "[", i, "]"));
    } else if (IsResident(begin, i)) {
      if (!is_sent) return StaysOnServer(absl::StrCat(kSharedInputs, "[", i, "]"));
    } else if (is_sent) {
      sent_inputs_.push_back(place);
      sent_positions.push_back(i);
    } else {
      ASSIGN_OR_RETURN(SharedTensor input,
                       OpenRange(ranges, kSharedInputs, i, inputs[i], parts().shared_memory,
                                 begin.origin, &CheckInputRange));
      begin.sources[place] = SourceOf(std::move(input));
    }
  }
  const std::vector<IncomingChunk>& sent = request_->chunks();
  RETURN_IF_ERROR(CheckSentCount(ranges, sent.size(), sent_inputs_.size(), NameOf(begin)));
  for (size_t i = 0; i < sent.size(); ++i) {
    RETURN_IF_ERROR(CheckSent(inputs[sent_positions[i]], sent[i], i));
  }
  return absl::OkStatus();
}

void ExecuteCall::SendInputs(Executor& executor, const std::shared_ptr<Execution>& execution) {
  const std::vector<IncomingChunk>& sent = request_->chunks();
  for (size_t i = 0; i < sent.size(); ++i) {
    executor.Receive(execution, {.tensor_index = sent_inputs_[i], .data = sent[i].data},
                     absl::StrCat("inputs[", i, "]"));
  }
  executor.ReceiveNone(execution);
  request_.reset();
}

void ExecuteCall::Prepare(Executor& executor, const std::shared_ptr<Execution>& execution,
                          const std::function<void()>& respond) {
  if (shared_outputs_.empty() || !execution->status().ok()) {
    respond();
    return;
  }
  results_.emplace(execution, parts().limits.max_response_chunk_bytes,
                   ResultPosition{.output = execution->outputs().size()});
  WriteShared(executor, execution, std::move(shared_outputs_), respond);
}

ExecuteCall::Written ExecuteCall::WriteResponse(const std::shared_ptr<Execution>& execution,
                                                grpc::ByteBuffer& message) {
  // With outputs in shared memory nothing is left to send, which would look like success.
  if (!execution->status().ok()) return Written::kError;
  if (!results_.has_value()) results_.emplace(execution, parts().limits.max_response_chunk_bytes);
  StackMessage<v1::ExecuteResponse> response;
  if (!results_->Next(*response, message)) return Written::kError;
  return results_->done() ? Written::kLast : Written::kMore;
}

void ExecuteCall::Failed() { CountFailure(model_.get(), arrived_); }

}  // namespace opmill
