#include "server/oip/infer_request.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/steady_time.h"
#include "proto/stack_message.h"
#include "server/api/call_context.h"
#include "server/api/result_stream.h"
#include "server/models/data_types.h"
#include "server/models/graph_program.h"
#include "server/oip/infer_parameter.h"
#include "server/oip/typed_contents.h"

namespace opmill::oip {
namespace {

using inference::InferParameter;
using inference::ModelInferRequest;

// What protobuf, and with it most clients, can read.
constexpr uint64_t kMostResponseBytes = uint64_t{2047} << 20;

std::string TensorPath(size_t position) { return absl::StrCat("inputs[", position, "]"); }

std::string ShapeTextOf(const TensorDesc& tensor) {
  return absl::StrCat(NameOf(tensor.data_type), "[", absl::StrJoin(tensor.sizes, ","), "]");
}

absl::StatusOr<TensorDesc> DecodeTensor(const ModelInferRequest::InferInputTensor& from,
                                        const ModelTensor& expected, const std::string& path) {
  TensorDesc to = {.data_type = expected.data_type};
  if (from.datatype() != TypeNameOf(expected)) {
    ASSIGN_OR_RETURN(to.data_type, DataTypeFrom(from.datatype(), absl::StrCat(path, ".datatype")));
  }
  for (int i = 0; i < from.shape_size(); ++i) {
    const int64_t size = from.shape(i);
    if (size < 1 || size > int64_t{std::numeric_limits<uint32_t>::max()}) {
      const std::string field = absl::StrCat(path, ".shape[", i, "]");
      return InvalidField(field, absl::StrCat(field, " (", size, ") is not at least 1 and at most ",
                                              std::numeric_limits<uint32_t>::max(), "."));
    }
    to.sizes.push_back(static_cast<uint32_t>(size));
    if (to.sizes.size() > kMaxRank) break;  // refused by the operator
  }
  return to;
}

// In the protocol 1 is the highest priority, and 0 the default, which comes after all others.
int32_t PriorityFrom(uint64_t number) {
  constexpr uint64_t kHighest = std::numeric_limits<int32_t>::max();
  if (number == 0) return 0;
  return static_cast<int32_t>(kHighest - std::min(number - 1, kHighest - 1));
}

// Parameters of the protocol itself; all others are the model's.
absl::StatusOr<bool> DecodeOwnParameter(const std::string& name, const InferParameter& value,
                                        ExecutionRequest& begin) {
  // Wishes that other servers grant, and one for HTTP: outputs are always binary.
  if (absl::StartsWith(name, "triton_") || name == "binary_data_output") return true;
  if (name == "priority") {
    ASSIGN_OR_RETURN(const uint64_t priority, UnsignedFrom(value, "parameters.priority"));
    begin.priority = PriorityFrom(priority);
    return true;
  }
  if (name != "timeout") return false;
  int64_t microseconds = 0;
  if (!absl::SimpleAtoi(TextOf(value), &microseconds) || microseconds <= 0) {
    return InvalidField("parameters.timeout",
                        absl::StrCat("parameters.timeout (\"", Excerpt(TextOf(value)),
                                     "\") is not a positive number of microseconds."));
  }
  begin.deadline =
      std::min(begin.deadline, begin.origin.arrived + absl::Microseconds(microseconds));
  return true;
}

}  // namespace

absl::Status InferRequest::Decode(grpc::ByteBuffer& message, const ModelTable& models,
                                  const TensorPlaces& places, ExecutionRequest& begin) {
  arrived_ = begin.origin.arrived;
  ASSIGN_OR_RETURN(message_, SplitMessage::Take(message, PayloadKind::kInference));
  StackMessage<ModelInferRequest> header;
  if (!header->ParseFromString(message_->header())) return NotAProtobuf("ModelInferRequest");
  id_ = header->id();
  ASSIGN_OR_RETURN(model_, models.Find(header->model_name(), header->model_version()));
  return DecodeHeader(*header, places, begin);
}

absl::Status InferRequest::DecodeHeader(const ModelInferRequest& header, const TensorPlaces& places,
                                        ExecutionRequest& begin) {
  const CallerPlaces caller = {places, begin.origin};
  Parameters parameters;
  for (const auto& [name, value] : header.parameters()) {
    ASSIGN_OR_RETURN(const bool is_own, DecodeOwnParameter(name, value, begin));
    if (!is_own) parameters.emplace(name, TextOf(value));
  }
  std::vector<TensorDesc> inputs;
  RETURN_IF_ERROR(DecodeInputs(header, caller, inputs));
  if (model_->graph == nullptr) {
    RETURN_IF_ERROR(DescribeOperator(std::move(inputs), parameters, begin));
  } else {
    RETURN_IF_ERROR(BindGraph(inputs, parameters));
    auto program = model_->graph->FindProgram(bindings_);
    if (program == nullptr) return absl::OkStatus();
    SetProgram(std::move(program), begin);
  }
  return Complete(header, caller, begin);
}

absl::Status InferRequest::Complete(const ModelInferRequest& header, const CallerPlaces& caller,
                                    ExecutionRequest& begin) {
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].is_sent()) continue;
    begin.sources.resize(sources_.size());
    begin.sources[i] = sources_[i].resident != nullptr
                           ? InputSource{.resident = sources_[i].resident}
                           : SourceOf(*sources_[i].shared);
  }
  return DecodeOutputs(header, caller, begin.OutputTensors());
}

absl::Status InferRequest::DescribeOperator(std::vector<TensorDesc> inputs,
                                            const Parameters& parameters,
                                            ExecutionRequest& begin) const {
  absl::StatusOr<OperatorDesc> desc = DescribeRequest(*model_, std::move(inputs), parameters);
  if (!desc.ok()) {
    const auto field = InputFieldOf(*model_->schema, sources_.size(), desc.status());
    if (!field.has_value()) return desc.status();
    return WithField(desc.status(),
                     absl::StrCat(TensorPath(sources_[field->index].position),
                                  absl::StrReplaceAll(field->rest, {{".sizes", ".shape"},
                                                                    {".data_type", ".datatype"}})));
  }
  begin.op = *std::move(desc);
  return CheckSources(begin.desc()->inputs);
}

absl::Status InferRequest::BindGraph(const std::vector<TensorDesc>& inputs,
                                     const Parameters& parameters) {
  if (!parameters.empty()) {
    const std::string path = absl::StrCat("parameters.", Excerpt(parameters.begin()->first));
    return InvalidField(
        path, absl::StrCat(path, " is not a parameter of ", model_->name, ", which has none."));
  }
  RETURN_IF_ERROR(CheckSources(inputs));
  ASSIGN_OR_RETURN(
      bindings_,
      BindingsOf(
          *model_, inputs, [&](size_t index) { return TensorPath(sources_[index].position); },
          [&](size_t index, absl::Span<std::byte> to) {
            return ReadValue(sources_[index], inputs[index], to);
          }));
  return absl::OkStatus();
}

void InferRequest::MakeProgram(ModelPrograms& programs, const TensorPlaces& places,
                               Executor& executor, ExecutionRequest& begin,
                               const std::function<void(const absl::Status&)>& done) {
  const std::shared_ptr<CallerAccount> caller = executor.AccountOf(begin.origin);
  absl::StatusOr<std::shared_ptr<ModelPrograms::Wait>> wait = programs.Make(
      model_, bindings_, caller, begin.deadline,
      [this, &places, &begin, done](const auto& made) { done(ProgramMade(made, places, begin)); });
  if (!wait.ok()) {
    done(wait.status());
    return;
  }
  pending_.Add(programs, *wait);
}

absl::Status InferRequest::ProgramMade(const absl::StatusOr<ModelPrograms::Program>& made,
                                       const TensorPlaces& places, ExecutionRequest& begin) {
  if (absl::IsInvalidArgument(made.status())) return WithField(made.status(), "inputs");
  if (!made.ok()) return made.status();
  SetProgram(*made, begin);
  StackMessage<ModelInferRequest> header;
  if (!header->ParseFromString(message_->header())) return NotAProtobuf("ModelInferRequest");
  return Complete(*header, {places, begin.origin}, begin);
}

void InferRequest::SetProgram(std::shared_ptr<const onnx::ModelProgram> program,
                              ExecutionRequest& begin) {
  std::vector<Source> sources;  // without those of the values
  for (const size_t i : program->inputs) sources.push_back(std::move(sources_[i]));
  sources_ = std::move(sources);
  begin.program = {program, &program->program};
  begin.model = std::make_shared<const RequestedModel>(RequestedModel{model_, std::move(program)});
}

absl::Status InferRequest::ReadValue(const Source& source, const TensorDesc& tensor,
                                     absl::Span<std::byte> to) const {
  if (source.resident != nullptr) {
    const std::string path = absl::StrCat(TensorPath(source.position), ".parameters.tensor");
    return InvalidField(path, absl::StrCat(path,
                                           " is given, but sizes depend on the elements of this "
                                           "input, which come with the request."));
  }
  if (source.shared.has_value()) return SourceOf(*source.shared).read(0, to);
  if (source.raw != nullptr) {
    source.raw->CopyTo(to.data());
    return absl::OkStatus();
  }
  std::byte* next = to.data();
  ConvertContents(*source.contents, tensor, [&](absl::Span<const std::byte> some) {
    next = std::copy(some.begin(), some.end(), next);
  });
  return absl::OkStatus();
}

absl::Status InferRequest::DecodeInputs(const ModelInferRequest& header, const CallerPlaces& caller,
                                        std::vector<TensorDesc>& inputs) {
  const std::vector<ModelTensor>& expected = model_->inputs;
  const size_t count = static_cast<size_t>(header.inputs_size());
  const size_t required =
      model_->schema == nullptr ? expected.size() : model_->schema->required_inputs();
  if (count < required || count > expected.size()) {
    return InvalidField(
        "inputs", absl::StrCat("inputs has ", header.inputs_size(), " tensors; ", model_->name,
                               " takes ", expected.size(), ": ", NamesOf(expected), "."));
  }
  inputs.resize(expected.size());  // the last ones may be left out
  sources_.resize(expected.size());
  std::vector<bool> given(expected.size());
  size_t raw_count = 0;  // raw_input_contents has none for inputs in shared memory
  for (size_t i = 0; i < count; ++i) {
    const auto& input = header.inputs(static_cast<int>(i));
    const std::string name_path = absl::StrCat(TensorPath(i), ".name");
    const size_t index = IndexOf(expected, input.name());
    if (index == expected.size()) {
      return InvalidField(name_path, absl::StrCat(name_path, " (\"", Excerpt(input.name()),
                                                  "\") is not an input of ", model_->name,
                                                  ", which takes ", NamesOf(expected), "."));
    }
    if (given[index]) {
      return InvalidField(
          name_path, absl::StrCat(name_path, " (\"", Excerpt(input.name()), "\") is given twice."));
    }
    given[index] = true;
    sources_[index].position = i;
    ASSIGN_OR_RETURN(inputs[index], DecodeTensor(input, expected[index], TensorPath(i)));
    if (!model_->is_built_in) {
      RETURN_IF_ERROR(CheckInput(*model_, index, inputs[index], TensorPath(i)));
    }
    ASSIGN_OR_RETURN(sources_[index].resident,
                     FindResident(input.parameters(), TensorPath(i), inputs[index], caller));
    if (sources_[index].resident != nullptr) continue;
    ASSIGN_OR_RETURN(sources_[index].shared,
                     OpenShared(input.parameters(), TensorPath(i), index, caller));
    RETURN_IF_ERROR(FindSource(sources_[index], raw_count));
  }
  if (const size_t raw = message_->chunks().size(); raw > raw_count) {
    return InvalidField(
        "raw_input_contents",
        absl::StrCat("raw_input_contents has ", raw, " tensors, but inputs has ", raw_count,
                     raw_count < count ? " outside shared memory." : "."));
  }
  for (size_t i = 0; i < count; ++i) {
    if (given[i]) continue;
    return InvalidField("inputs", absl::StrCat("inputs has no ", expected[i].name, ", which ",
                                               model_->name, " takes before the others."));
  }
  inputs.resize(count);
  sources_.resize(count);
  return absl::OkStatus();
}

absl::Status InferRequest::FindSource(Source& source, size_t& raw_count) const {
  const size_t position = source.position;
  const std::vector<IncomingChunk>& raw = message_->chunks();
  const std::vector<Payload>& contents = message_->contents()[position];
  const bool is_typed = absl::c_any_of(contents, [](const Payload& p) { return p.size() > 0; });
  if (source.shared.has_value()) {
    if (!is_typed) return absl::OkStatus();
    const std::string path = absl::StrCat(TensorPath(position), ".contents");
    return InvalidField(path, absl::StrCat(path, " is given, but the input is in shared memory."));
  }
  source.raw_index = raw_count++;
  if (is_typed && !raw.empty()) {
    const std::string path = absl::StrCat(TensorPath(position), ".contents");
    return InvalidField(path, absl::StrCat(path,
                                           " is given beside raw_input_contents; a request has "
                                           "one or the other."));
  }
  if (source.raw_index < raw.size()) {
    source.raw = &raw[source.raw_index].data;
  } else if (is_typed) {
    source.contents = &contents;
  } else {
    const std::string path = TensorPath(position);
    return InvalidField(path,
                        absl::StrCat(path, " has no elements: raw_input_contents has ", raw.size(),
                                     " tensors, and ", path, ".contents is empty."));
  }
  return absl::OkStatus();
}

absl::Status InferRequest::CheckSources(const std::vector<TensorDesc>& inputs) const {
  for (size_t i = 0; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    const TensorDesc& tensor = inputs[i];
    if (source.resident != nullptr) continue;
    if (source.shared.has_value()) {
      RETURN_IF_ERROR(
          CheckInputRange(tensor, source.shared->range, ByteSizePath(TensorPath(source.position))));
      continue;
    }
    if (source.raw == nullptr) {
      RETURN_IF_ERROR(CheckContents(*source.contents, tensor,
                                    absl::StrCat(TensorPath(source.position), ".contents")));
      continue;
    }
    const uint64_t bytes = SpannedBytes(tensor);
    if (source.raw->size() == bytes) continue;
    const std::string path = absl::StrCat("raw_input_contents[", source.raw_index, "]");
    return InvalidField(path, absl::StrCat(path, " has ", source.raw->size(), " bytes; ",
                                           ShapeTextOf(tensor), " takes ", bytes, "."));
  }
  return absl::OkStatus();
}

absl::Status InferRequest::DecodeOutputs(const ModelInferRequest& header,
                                         const CallerPlaces& caller,
                                         const std::vector<TensorDesc>& outputs) {
  const std::vector<ModelTensor>& known = model_->outputs;
  for (int i = 0; i < header.outputs_size(); ++i) {
    const std::string& name = header.outputs(i).name();
    const std::string output_path = absl::StrCat("outputs[", i, "]");
    const std::string path = absl::StrCat(output_path, ".name");
    const size_t index = IndexOf(known, name);
    if (index == known.size()) {
      return InvalidField(
          path, absl::StrCat(path, " (\"", Excerpt(name), "\") is not an output of ", model_->name,
                             ", which gives ", NamesOf(known), "."));
    }
    if (absl::c_any_of(outputs_, [&](const Output& output) { return output.index == index; })) {
      return InvalidField(path, absl::StrCat(path, " (\"", Excerpt(name), "\") is given twice."));
    }
    ASSIGN_OR_RETURN(std::optional<SharedTensor> shared,
                     OpenShared(header.outputs(i).parameters(), output_path, index, caller));
    outputs_.push_back({index, shared.has_value()});
    if (!shared.has_value()) continue;
    RETURN_IF_ERROR(CheckOutputRange(outputs[index], shared->range, ByteSizePath(output_path)));
    shared_outputs_.push_back(*std::move(shared));
  }
  RETURN_IF_ERROR(CheckNoOverlap(shared_outputs_));
  if (outputs_.empty()) {
    for (size_t i = 0; i < known.size(); ++i) outputs_.push_back({i, false});
  }
  uint64_t bytes = 0;
  for (const Output& output : outputs_) {
    if (!output.is_shared) bytes += SpannedBytes(outputs[output.index]);
  }
  if (bytes <= kMostResponseBytes) return absl::OkStatus();
  return InvalidField(
      "outputs", absl::StrCat("The outputs have ", bytes, " bytes; one response holds at most ",
                              kMostResponseBytes, "."));
}

void InferRequest::SendInputs(Executor& executor, const std::shared_ptr<Execution>& execution) {
  const std::vector<TensorDesc>& inputs = execution->inputs();
  for (uint32_t i = 0; i < sources_.size(); ++i) {
    if (!sources_[i].is_sent()) continue;
    const std::string path = TensorPath(sources_[i].position);
    if (sources_[i].raw != nullptr) {
      executor.Receive(execution, {.tensor_index = i, .data = *sources_[i].raw}, path);
      continue;
    }
    uint64_t offset = 0;
    ConvertContents(*sources_[i].contents, inputs[i], [&](absl::Span<const std::byte> bytes) {
      const std::vector<grpc::Slice> slices = {
          grpc::Slice(bytes.data(), bytes.size(), grpc::Slice::STATIC_SLICE)};
      executor.Receive(
          execution,
          {.tensor_index = i, .offset = offset, .data = Payload(&slices, 0, 0, bytes.size())},
          path);
      offset += bytes.size();
    });
  }
  executor.ReceiveNone(execution);
  sources_.clear();
  message_.reset();
}

void InferRequest::WriteShared(Executor& executor, const std::shared_ptr<Execution>& execution,
                               std::function<void()> done) {
  if (shared_outputs_.empty() || !execution->status().ok()) {
    done();
    return;
  }
  opmill::WriteShared(executor, execution, std::move(shared_outputs_), std::move(done));
}

bool InferRequest::Encode(const std::shared_ptr<Execution>& execution, uint32_t outer_field,
                          grpc::ByteBuffer& message) const {
  const ExecutionRequest& request = execution->request();
  StackMessage<inference::ModelInferResponse> header;
  header->set_model_name(model_->name);
  header->set_model_version(model_->version);
  header->set_id(id_);
  std::vector<grpc::Slice> contents;
  for (const auto [index, is_shared] : outputs_) {
    const std::shared_ptr<BudgetedBuffer> output = execution->output(index);
    if (output == nullptr) return false;
    const TensorDesc& tensor = execution->outputs()[index];
    inference::ModelInferResponse::InferOutputTensor& to = *header->add_outputs();
    to.set_name(model_->outputs[index].name);
    if (request.model == nullptr) {
      to.set_datatype(std::string(NameOf(tensor.data_type)));
      to.mutable_shape()->Add(tensor.sizes.begin(), tensor.sizes.end());
    } else {  // may have no dimensions
      to.set_datatype(std::string(TypeNameOf(model_->outputs[index])));
      const onnx::Sizes& sizes = request.model->graph->outputs[index].sizes;
      to.mutable_shape()->Add(sizes.begin(), sizes.end());
    }
    contents.push_back(is_shared ? grpc::Slice()
                                 : SliceOf(output, 0, execution->output_bytes()[index]));
  }
  const Execution::Report report = execution->report();
  model_->statistics->AddSuccess(report.times, report.total, request.rows());
  if (request.model == nullptr) {
    model_->statistics->AddExecution(1, report.times.compute);
  }
  grpc::ByteBuffer joined =
      JoinBytes(*header, inference::ModelInferResponse::kRawOutputContentsFieldNumber,
                std::move(contents), outer_field);
  message.Swap(&joined);
  return true;
}

void InferRequest::CountFailure() const {
  if (model_ != nullptr) model_->statistics->AddFailure(SteadyNow() - arrived_);
}

}  // namespace opmill::oip
