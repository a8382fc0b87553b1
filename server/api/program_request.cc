#include "server/api/program_request.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "kernels/base/excerpt.h"
#include "server/api/out_of_memory.h"
#include "server/models/graph_program.h"

namespace opmill {
namespace {

std::string InputPath(size_t position) { return absl::StrCat("inputs[", position, "]"); }

std::string TypeText(const ModelTensor& tensor) {
  return tensor.is_bool ? "BOOL (elements of UINT8)" : std::string(ToString(tensor.data_type));
}

std::string ShapeText(const ModelTensor& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.shape, ","), "]");
}

// Decodes the inputs of a request for one model.
class InputDecoder {
 public:
  InputDecoder(const v1::ModelDesc& from, RequestedModel& to)
      : from_(from), to_(to), model_(*to.model) {}

  // To be called first.
  absl::Status Decode() {
    const size_t count = model_.inputs.size();
    if (static_cast<size_t>(from_.inputs_size()) != count) {
      return InvalidField(
          "inputs", absl::StrCat("inputs has ", from_.inputs_size(), " tensors; ", model_.name,
                                 " takes ", count, ": ", NamesOf(model_.inputs), "."));
    }
    inputs_.resize(count);
    positions_.assign(count, count);
    for (size_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(const size_t index, IndexOfInput(i));
      ASSIGN_OR_RETURN(TensorDesc tensor, DecodeInput(i, model_.inputs[index]));
      to_.inputs.push_back(tensor);
      inputs_[index] = std::move(tensor);
      positions_[index] = i;
    }
    return absl::OkStatus();
  }
  // Of a model with fixed attributes.
  absl::StatusOr<OperatorDesc> DescribeOperator() {
    for (size_t i = 0; i < inputs_.size(); ++i) RETURN_IF_ERROR(CheckNoValue(i));
    absl::StatusOr<OperatorDesc> desc = DescribeRequest(model_, inputs_, {});
    if (!desc.ok()) {
      const auto field = InputFieldOf(*model_.schema, inputs_.size(), desc.status());
      return WithField(desc.status(), field.has_value()
                                          ? absl::StrCat(InputPath(positions_[field->index]),
                                                         ".tensor", field->rest)
                                          : "inputs");
    }
    to_.program_inputs.resize(inputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      to_.program_inputs[positions_[i]] = static_cast<uint32_t>(i);
    }
    return desc;
  }
  // Of an ONNX model.
  absl::StatusOr<onnx::InputBindings> BindGraph() const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!model_.graph->inputs()[i].is_form) RETURN_IF_ERROR(CheckNoValue(i));
    }
    const auto path_of = [this](size_t index) { return InputPath(positions_[index]); };
    const auto read = [this](size_t index, absl::Span<std::byte> bytes) {
      return ReadValue(index, bytes);
    };
    return BindingsOf(model_, inputs_, path_of, read);
  }
  // In the request, of the model's inputs.
  const std::vector<size_t>& positions() const { return positions_; }

 private:
  absl::StatusOr<size_t> IndexOfInput(size_t position) const {
    const std::string& name = input(position).name();
    const std::string path = absl::StrCat(InputPath(position), ".name");
    if (name.empty() != input(0).name().empty()) {
      return InvalidField(path, absl::StrCat(path, " is ", name.empty() ? "not given" : "given",
                                             "; either all inputs have a name, or none."));
    }
    const size_t index = name.empty() ? position : IndexOf(model_.inputs, name);
    if (index == model_.inputs.size()) {
      return InvalidField(
          path, absl::StrCat(path, " (\"", Excerpt(name), "\") is not an input of ", model_.name,
                             ", which takes ", NamesOf(model_.inputs), "."));
    }
    if (positions_[index] == positions_.size()) return index;
    return InvalidField(path, absl::StrCat(path, " (\"", Excerpt(name), "\") is given twice."));
  }

  absl::StatusOr<TensorDesc> DecodeInput(size_t position, const ModelTensor& expected) const {
    const std::string path = absl::StrCat(InputPath(position), ".tensor");
    const auto check_rank = [&](const char* list, int count) {
      if (static_cast<uint32_t>(count) <= kMaxRank) return absl::OkStatus();
      const std::string field = absl::StrCat(path, ".", list);
      return InvalidField(
          field, absl::StrCat(field, " has ", count, " numbers; the limit is ", kMaxRank, "."));
    };
    RETURN_IF_ERROR(check_rank("sizes", input(position).tensor().sizes_size()));
    RETURN_IF_ERROR(check_rank("strides", input(position).tensor().strides_size()));
    ASSIGN_OR_RETURN(TensorDesc tensor, DecodeTensor(input(position).tensor(), path));
    if (tensor.data_type != expected.data_type) {
      return InvalidField(
          absl::StrCat(path, ".data_type"),
          absl::StrCat("The input ", Excerpt(expected.name), " of ", model_.name, " is ",
                       TypeText(expected), ", not ", ToString(tensor.data_type), "."));
    }
    RETURN_IF_ERROR(CheckBatch(model_, tensor, absl::StrCat(path, ".sizes")));
    if (!TakesSizes(expected, tensor.sizes)) {
      return InvalidField(
          absl::StrCat(path, ".sizes"),
          absl::StrCat("The input ", Excerpt(expected.name), " of ", model_.name, " has the sizes ",
                       ShapeText(expected), ", not [", absl::StrJoin(tensor.sizes, ","), "]."));
    }
    const auto zero = absl::c_find(tensor.sizes, 0u);
    if (zero != tensor.sizes.end()) {
      const std::string field = absl::StrCat(path, ".sizes[", zero - tensor.sizes.begin(), "]");
      return InvalidField(field, absl::StrCat(field, " (0) is not at least 1."));
    }
    if (!tensor.strides.empty() && tensor.strides != PackedStrides(tensor.sizes)) {
      return InvalidField(absl::StrCat(path, ".strides"),
                          absl::StrCat(path, ".strides is [", absl::StrJoin(tensor.strides, ","),
                                       "]; models take packed tensors, which need none."));
    }
    tensor.strides.clear();
    return tensor;
  }

  absl::Status CheckNoValue(size_t index) const {
    if (input(positions_[index]).value().empty()) return absl::OkStatus();
    const std::string path = absl::StrCat(InputPath(positions_[index]), ".value");
    return InvalidField(path, absl::StrCat(path, " is given, but no size of ", model_.name,
                                           " depends on the elements of the input ",
                                           Excerpt(model_.inputs[index].name), "."));
  }

  absl::Status ReadValue(size_t index, absl::Span<std::byte> bytes) const {
    const std::string& value = input(positions_[index]).value();
    if (value.size() == bytes.size()) {
      std::copy_n(reinterpret_cast<const std::byte*>(value.data()), value.size(), bytes.data());
      return absl::OkStatus();
    }
    const std::string path = absl::StrCat(InputPath(positions_[index]), ".value");
    return InvalidField(path, absl::StrCat(path, " has ", value.size(), " bytes; ",
                                           ToString(inputs_[index]), " takes ", bytes.size(),
                                           ". The model depends on the elements of the input ",
                                           Excerpt(model_.inputs[index].name), "."));
  }

  const v1::ModelInput& input(size_t position) const {
    return from_.inputs(static_cast<int>(position));
  }

  const v1::ModelDesc& from_;
  RequestedModel& to_;
  const Model& model_;
  std::vector<TensorDesc> inputs_;  // in the order of the model, as the next
  std::vector<size_t> positions_;   // in the request; their number if the input has not come yet
};

}  // namespace

absl::Status ProgramRequest::DecodeModel(const v1::ModelDesc& desc,
                                         std::optional<OwnedPayload> file, ExecutionRequest& to) {
  RETURN_IF_ERROR(finder_.Find(desc, std::move(file)));
  if (finder_.model() != nullptr) return DecodeInputs(desc, to);
  desc_ = desc;
  return absl::OkStatus();
}

absl::Status ProgramRequest::DecodeInputs(const v1::ModelDesc& desc, ExecutionRequest& to) {
  requested_ = std::make_shared<RequestedModel>(RequestedModel{.model = finder_.model()});
  to.model = requested_;
  const absl::Status decoded = BindInputs(desc, to);
  return decoded.ok() ? decoded : finder_.OfModel(decoded);
}

absl::Status ProgramRequest::BindInputs(const v1::ModelDesc& desc, ExecutionRequest& to) {
  InputDecoder decoder(desc, *requested_);
  RETURN_IF_ERROR(decoder.Decode());
  const std::shared_ptr<const onnx::Model>& graph = requested_->model->graph;
  if (graph == nullptr) {
    ASSIGN_OR_RETURN(OperatorDesc op, decoder.DescribeOperator());
    to.program = std::make_shared<const Program>(ProgramOf(std::move(op)));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(bindings_, decoder.BindGraph());
  positions_ = decoder.positions();
  if (auto program = graph->FindProgram(bindings_)) SetProgram(std::move(program), to);
  return absl::OkStatus();
}

void ProgramRequest::SetProgram(ModelPrograms::Program program, ExecutionRequest& to) {
  requested_->program_inputs.assign(positions_.size(), RequestedModel::kInProgram);
  for (size_t i = 0; i < program->inputs.size(); ++i) {
    requested_->program_inputs[positions_[program->inputs[i]]] = static_cast<uint32_t>(i);
  }
  to.program = {program, &program->program};
  requested_->graph = std::move(program);
}

void ProgramRequest::Make(Executor& executor, ExecutionRequest& to, const Done& done) {
  if (finder_.model() != nullptr) {
    MakeProgram(executor, to, done);
    return;
  }
  finder_.Read(executor, to.origin, to.deadline, [this, &executor, &to, done](absl::Status status) {
    if (status.ok()) status = CatchOutOfMemory([&] { return DecodeInputs(desc_, to); });
    if (status.ok() && !to.has_program()) {
      MakeProgram(executor, to, done);
    } else {
      done(status);
    }
  });
}

void ProgramRequest::Explain(Executor& executor, ExecutionRequest& to,
                             const ModelPrograms::Explained& done) {
  finder_.Await(
      [&] {
        return finder_.sources().programs.Explain(requested_->model, bindings_,
                                                  executor.AccountOf(to.origin), to.deadline, done);
      },
      done);
}

void ProgramRequest::MakeProgram(Executor& executor, ExecutionRequest& to, const Done& done) {
  const auto made = [this, &to, done](const absl::StatusOr<ModelPrograms::Program>& program) {
    if (program.ok()) SetProgram(*program, to);
    done(absl::IsInvalidArgument(program.status())
             ? finder_.OfModel(WithField(program.status(), "inputs"))
             : program.status());
  };
  finder_.Await(
      [&] {
        return finder_.sources().programs.Make(requested_->model, bindings_,
                                               executor.AccountOf(to.origin), to.deadline, made);
      },
      done);
}

}  // namespace opmill
