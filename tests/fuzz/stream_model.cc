#include "tests/fuzz/stream_model.h"

#include "google/rpc/error_details.pb.h"
#include "kernels/operators/operator_reference.h"
#include "server/api/request_decoder.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/field_path.h"

namespace opmill {
namespace {

// A broadcast tensor has few bytes but much work.
constexpr uint64_t kMaxWork = 1 << 14;

bool IsKnownEnd(int code) {
  switch (static_cast<absl::StatusCode>(code)) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kNotFound:  // there is no such model
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnavailable:
      return true;
    default:
      return false;
  }
}

void CheckRefusal(const google::rpc::Status& status) {
  FUZZ_CHECK(IsKnownEnd(status.code()), status.ShortDebugString());
  const absl::Status refusal(static_cast<absl::StatusCode>(status.code()), status.message());
  FUZZ_CHECK(IsSentence(refusal), status.ShortDebugString());
  bool has_reason = false;
  bool names_field = false;
  for (const auto& any : status.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest bad;
    if (any.UnpackTo(&info)) has_reason = info.domain() == "opmill" && !info.reason().empty();
    if (!any.UnpackTo(&bad)) continue;
    for (const auto& violation : bad.field_violations()) {
      names_field = true;
      FUZZ_CHECK(NamesField(violation.field(), v1::ExecuteStreamRequest::descriptor()),
                 status.ShortDebugString());
    }
  }
  FUZZ_CHECK(has_reason, status.ShortDebugString());
  FUZZ_CHECK(names_field || !absl::IsInvalidArgument(refusal), status.ShortDebugString());
}

}  // namespace

bool StreamModel::Sends(const v1::ExecuteStreamRequest& message) {
  std::optional<OperatorDesc> desc;
  if (message.has_begin()) {
    absl::StatusOr<OperatorDesc> decoded = DecodeRequest(message.begin());
    if (decoded.ok()) desc = *std::move(decoded);
    if (desc.has_value() && ElementCount(desc->inputs[0]) > kMaxWork) return false;
  }
  Execution& execution = executions_[message.execution_id()];
  if (message.has_begin() && ++execution.begins == 1) execution.desc = std::move(desc);
  for (const v1::TensorChunk& chunk : message.chunks()) Take(execution, chunk);
  return true;
}

void StreamModel::TakeBack(uint64_t id, const StreamModel& before) {
  const auto found = before.executions_.find(id);
  const Execution known = found == before.executions_.end() ? Execution() : found->second;
  Execution& execution = executions_[id];
  execution.begins = known.begins;
  execution.desc = known.desc;
  execution.input = known.input;
  execution.input_is_right = known.input_is_right;
}

void StreamModel::Take(Execution& execution, const v1::TensorChunk& chunk) {
  if (!execution.desc.has_value()) return;
  const TensorDesc& input = (*execution.desc).inputs[0];
  if (execution.input.size() >= SpannedBytes(input)) return;
  execution.input_is_right &= chunk.tensor_index() == 0 &&
                              chunk.offset() == execution.input.size() &&
                              chunk.data().size() <= RequiredBytes(input) - chunk.offset();
  if (execution.input_is_right) execution.input += chunk.data();
}

void StreamModel::Receives(const v1::ExecuteStreamResponse& message) {
  const auto found = executions_.find(message.execution_id());
  FUZZ_CHECK(found != executions_.end(),
             "a response for an unknown id: ", message.ShortDebugString());
  Execution& execution = found->second;
  if (message.has_started()) {
    FUZZ_CHECK(!execution.started || execution.begins > 1, message.ShortDebugString());
    execution.started = true;
    execution.outputs.assign(message.started().outputs_size(), "");
  }
  for (const v1::TensorChunk& chunk : message.chunks()) {
    FUZZ_CHECK(chunk.tensor_index() < execution.outputs.size(), message.ShortDebugString());
    std::string& output = execution.outputs[chunk.tensor_index()];
    FUZZ_CHECK(chunk.offset() == output.size(), message.ShortDebugString());
    output += chunk.data();
  }
  if (message.end_case() == v1::ExecuteStreamResponse::END_NOT_SET) return;
  ++execution.ends;
  if (message.has_status()) {
    CheckRefusal(message.status());
  } else {
    FUZZ_CHECK(++execution.good_ends <= execution.begins, message.ShortDebugString());
    if (execution.begins == 1) CheckAnswer(execution);
  }
}

void StreamModel::CheckAnswer(Execution& execution) {
  FUZZ_CHECK(execution.desc.has_value(), "an invalid descriptor has results");
  const OperatorDesc& desc = *execution.desc;
  FUZZ_CHECK(execution.input_is_right && execution.input.size() >= SpannedBytes(desc.inputs[0]),
             "computed from other bytes than were sent: ", ToString(desc));
  execution.input.resize(RequiredBytes(desc.inputs[0]));
  const std::vector<TensorDesc> outputs = OutputsOf(desc);
  std::vector<std::vector<std::byte>> expected;
  std::vector<absl::Span<std::byte>> spans;
  for (const TensorDesc& output : outputs) expected.emplace_back(RequiredBytes(output));
  for (auto& output : expected) spans.push_back(absl::MakeSpan(output));
  const absl::Span<const std::byte> input(
      reinterpret_cast<const std::byte*>(execution.input.data()), execution.input.size());
  const absl::Status run = ReferenceRun(desc, {input}, spans);
  FUZZ_CHECK(run.ok(), run.ToString());
  FUZZ_CHECK(execution.outputs.size() == expected.size(), ToString(desc));
  for (size_t i = 0; i < expected.size(); ++i) {
    const absl::string_view bytes(reinterpret_cast<const char*>(expected[i].data()),
                                  SpannedBytes(outputs[i]));
    FUZZ_CHECK(execution.outputs[i] == bytes, "output ", i, " of ", ToString(desc));
  }
}

void StreamModel::Ended() const {
  for (const auto& [id, execution] : executions_) {
    FUZZ_CHECK(execution.begins == 0 || execution.ends > 0, "execution ", id, " has no end");
  }
}

}  // namespace opmill
