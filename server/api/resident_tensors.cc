#include "server/api/resident_tensors.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "proto/duration.h"
#include "server/api/grpc_status.h"
#include "server/api/program_request.h"
#include "server/api/request_decoder.h"

namespace opmill {
namespace {

absl::Status CheckIndex(const std::string& path, absl::string_view of, size_t index, size_t count) {
  if (index < count) return absl::OkStatus();
  return InvalidField(path, absl::StrCat(path, " (", index, ") is not below the number of ", of,
                                         "s (", count, ")."));
}

absl::Status GivenTwice(const std::string& path, size_t index) {
  return InvalidField(path, absl::StrCat(path, " (", index, ") is given twice."));
}

absl::Status DecodeInput(const v1::ResidentInput& from, const std::string& path, TensorStore& store,
                         ExecutionRequest& to) {
  const std::vector<TensorDesc>& inputs = InputsOf(to);
  const std::string index_path = absl::StrCat(path, ".input");
  RETURN_IF_ERROR(CheckIndex(index_path, "input", from.input(), inputs.size()));
  const uint32_t place = ProgramInputOf(to, from.input());
  if (place == RequestedModel::kInProgram) {
    return InvalidField(index_path, absl::StrCat(index_path, " (", from.input(),
                                                 ") is an input that has a value."));
  }
  InputSource& source = to.sources[place];
  if (source.resident != nullptr) return GivenTwice(index_path, from.input());
  absl::StatusOr<std::shared_ptr<const ResidentTensor>> found =
      store.Find(to.origin.caller, from.name());
  if (!found.ok()) return UnderPath(path, found.status());
  RETURN_IF_ERROR(CheckFits(inputs[from.input()], **found, absl::StrCat(path, ".name")));
  source.resident = *std::move(found);
  return absl::OkStatus();
}

absl::StatusOr<ResidentWrite> DecodeWrite(const v1::ResidentOutput& from,
                                          const ExecutionRequest& of) {
  ResidentWrite write = {.owner = of.origin.caller,
                         .name = from.name(),
                         .first_row = from.first_row(),
                         .capacity_rows = from.capacity_rows()};
  switch (from.kind()) {
    case v1::ResidentOutput::KIND_PUT:
      write.kind = ResidentWrite::Kind::kPut;
      break;
    case v1::ResidentOutput::KIND_APPEND:
      write.kind = ResidentWrite::Kind::kAppend;
      break;
    case v1::ResidentOutput::KIND_WRITE:
      write.kind = ResidentWrite::Kind::kWrite;
      break;
    default:
      return InvalidField("kind", absl::StrCat("kind (", static_cast<int>(from.kind()),
                                               ") is none of KIND_PUT (1), KIND_APPEND (2) and "
                                               "KIND_WRITE (3)."));
  }
  if (from.has_if_generation()) write.if_generation = from.if_generation();
  if (from.has_lease()) {
    write.lease = absl::Seconds(from.lease().seconds()) + absl::Nanoseconds(from.lease().nanos());
    if (write.lease <= absl::ZeroDuration()) {
      return InvalidField("lease", absl::StrCat("lease (", absl::FormatDuration(write.lease),
                                                ") is not longer than 0."));
    }
  }
  return write;
}

absl::Status DecodeOutput(const v1::ResidentOutput& from, const std::string& path,
                          TensorStore& store, const std::vector<TensorDesc>& outputs,
                          ExecutionRequest& to) {
  const std::string index_path = absl::StrCat(path, ".output");
  RETURN_IF_ERROR(CheckIndex(index_path, "output", from.output(), outputs.size()));
  if (to.WritingOf(from.output()) != nullptr) return GivenTwice(index_path, from.output());
  absl::StatusOr<ResidentWrite> write = DecodeWrite(from, to);
  if (!write.ok()) return UnderPath(path, write.status());
  absl::StatusOr<std::shared_ptr<TensorStore::Writing>> writing =
      store.Begin(*std::move(write), outputs[from.output()]);
  if (!writing.ok()) return UnderPath(path, writing.status());
  to.kept.push_back({from.output(), *std::move(writing)});
  return absl::OkStatus();
}

// With the sizes that the model gives them; one without dimensions is a row.
std::vector<TensorDesc> OutputsOf(const ExecutionRequest& request) {
  std::vector<TensorDesc> outputs = request.OutputTensors();
  if (request.model == nullptr || request.model->graph == nullptr) return outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<int64_t>& sizes = request.model->graph->outputs[i].sizes;
    if (!sizes.empty()) outputs[i].sizes.assign(sizes.begin(), sizes.end());
  }
  return outputs;
}

}  // namespace

absl::Status CheckFits(const TensorDesc& input, const ResidentTensor& resident,
                       const std::string& path) {
  if (input.data_type == resident.tensor.data_type &&
      SpannedBytes(input) <= SpannedBytes(resident.tensor)) {
    return absl::OkStatus();
  }
  return InvalidField(
      path, absl::StrCat("The input is ", ToString(input), ", of ", SpannedBytes(input),
                         " bytes; the tensor \"", resident.name, "\" is ",
                         ToString(resident.tensor), ", of ", SpannedBytes(resident.tensor), "."));
}

absl::Status DecodeResident(const ResidentFields& fields, TensorStore& store,
                            ExecutionRequest& to) {
  if (!fields.inputs.empty()) to.sources.resize(to.InputTensors().size());
  for (int i = 0; i < fields.inputs.size(); ++i) {
    RETURN_IF_ERROR(
        DecodeInput(fields.inputs[i], absl::StrCat("resident_inputs[", i, "]"), store, to));
  }
  if (fields.outputs.empty()) return absl::OkStatus();
  const std::vector<TensorDesc> outputs = OutputsOf(to);
  for (int i = 0; i < fields.outputs.size(); ++i) {
    RETURN_IF_ERROR(DecodeOutput(fields.outputs[i], absl::StrCat("resident_outputs[", i, "]"),
                                 store, outputs, to));
  }
  return absl::OkStatus();
}

bool IsResident(const ExecutionRequest& request, size_t input) {
  const uint32_t place = ProgramInputOf(request, static_cast<uint32_t>(input));
  return place < request.sources.size() && request.sources[place].resident != nullptr;
}

absl::Status EncodeTensors(TensorStore& store, absl::string_view owner, const std::string& name,
                           v1::ListTensorsResponse& to) {
  for (const TensorStore::Listed& each : store.List(owner)) {
    if (!name.empty() && each.state->name != name) continue;
    v1::ResidentTensor& tensor = *to.add_tensors();
    tensor.set_name(each.state->name);
    EncodeTensor(each.state->tensor, *tensor.mutable_tensor());
    tensor.set_generation(each.state->generation);
    tensor.set_capacity_rows(each.state->capacity_rows);
    tensor.set_bytes(each.bytes);
    if (each.lease != absl::InfiniteDuration()) {
      EncodeDuration(each.lease, *tensor.mutable_lease());
      EncodeDuration(each.left, *tensor.mutable_lease_left());
    }
    tensor.set_is_lost(each.is_lost);
    tensor.set_is_read_only(each.is_read_only);
  }
  if (name.empty() || to.tensors_size() > 0) return absl::OkStatus();
  return store.Find(owner, name).status();
}

void EncodeTotals(const TensorStore::Totals& totals, v1::ResidentStatistics& to) {
  to.set_tensors(totals.tensors);
  to.set_bytes(totals.bytes);
  to.set_expired(totals.expired);
  to.set_lost(totals.lost);
}

}  // namespace opmill
