#include "server/models/warm_up.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/file_within.h"
#include "kernels/base/regular_file.h"
#include "kernels/base/utf8_path.h"
#include "kernels/onnx/graph.h"

namespace opmill {
namespace {

using Input = inference::ModelWarmup::Input;

constexpr size_t kMostWarmUps = 64;
constexpr uint32_t kMostRuns = 1000;
constexpr uint64_t kMostFileBytes = uint64_t{64} << 20;

absl::Status Refuse(const std::string& field, absl::string_view why) {
  return InvalidField(field, absl::StrCat(field, " ", why));
}

absl::Status CheckCounts(const Model& model, const inference::ModelWarmup& warm_up, size_t index) {
  if (const int count = model.warm_ups.size(); count > static_cast<int>(kMostWarmUps)) {
    return Refuse("model_warmup",
                  absl::StrCat("has ", count, " entries, more than ", kMostWarmUps, "."));
  }
  const uint32_t most_rows = std::max(model.max_batch_size, 1u);
  if (warm_up.batch_size() < 1 || warm_up.batch_size() > most_rows) {
    return Refuse(
        absl::StrCat(WarmUpField(index), ".batch_size"),
        absl::StrCat("(", warm_up.batch_size(), ") is not at least 1 and at most ", most_rows,
                     model.max_batch_size == 0 ? ": the model has no max_batch_size."
                                               : ", the max_batch_size."));
  }
  if (warm_up.count() > kMostRuns) {
    return Refuse(absl::StrCat(WarmUpField(index), ".count"),
                  absl::StrCat("(", warm_up.count(), ") is more than ", kMostRuns, "."));
  }
  return absl::OkStatus();
}

absl::Status CheckInputs(const Model& model, const inference::ModelWarmup& warm_up, size_t index) {
  const std::string field = absl::StrCat(WarmUpField(index), ".inputs");
  for (const auto& [name, input] : warm_up.inputs()) {
    if (IndexOf(model.inputs, name) < model.inputs.size()) continue;
    return Refuse(field, absl::StrCat("has the key \"", Excerpt(name),
                                      "\", which is not an input of the model; it takes ",
                                      NamesOf(model.inputs), "."));
  }
  for (const ModelTensor& tensor : model.inputs) {
    if (warm_up.inputs().contains(tensor.name)) continue;
    return Refuse(field, absl::StrCat("has no ", Excerpt(tensor.name), "; the model takes ",
                                      NamesOf(model.inputs), "."));
  }
  return absl::OkStatus();
}

// As of a request with `rows`.
absl::StatusOr<TensorDesc> DescOf(const Model& model, const ModelTensor& tensor, const Input& input,
                                  uint32_t rows, const std::string& path) {
  if (input.data_type() != ConfigTypeOf(tensor)) {
    return Refuse(
        absl::StrCat(path, ".data_type"),
        absl::StrCat("is ", inference::DataType_Name(input.data_type()), "; the input is ",
                     inference::DataType_Name(ConfigTypeOf(tensor)), "."));
  }
  TensorDesc desc = {.data_type = tensor.data_type};
  if (model.max_batch_size > 0) desc.sizes.push_back(rows);
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  for (int d = 0; d < input.dims_size(); ++d) {
    if (input.dims(d) < 1 || input.dims(d) > kMost) {
      return Refuse(
          absl::StrCat(path, ".dims[", d, "]"),
          absl::StrCat("(", input.dims(d), ") is not at least 1 and at most ", kMost, "."));
    }
    desc.sizes.push_back(static_cast<uint32_t>(input.dims(d)));
  }
  if (!TakesSizes(tensor, desc.sizes)) {
    return Refuse(
        absl::StrCat(path, ".dims"),
        absl::StrCat("is [", absl::StrJoin(input.dims(), ","), "]; the model takes the shape [",
                     absl::StrJoin(tensor.shape, ","), "]",
                     model.max_batch_size > 0 ? ", of which batch_size is the first." : "."));
  }
  const auto count = onnx::ElementCount({desc.sizes.begin(), desc.sizes.end()});
  if (count.has_value() && *count <= kMaxElements) return desc;
  return Refuse(absl::StrCat(path, ".dims"),
                absl::StrCat("and batch_size give more than ", kMaxElements, " elements."));
}

// Small positive numbers of every type: no float is infinite or NaN.
std::byte RandomByte(uint64_t position, bool is_bool) {
  constexpr uint64_t kOddConstants[] = {0x9E3779B97F4A7C15ull, 0xBF58476D1CE4E5B9ull};
  uint64_t mixed = (position + 1) * kOddConstants[0];
  mixed = (mixed ^ (mixed >> 30)) * kOddConstants[1];
  return static_cast<std::byte>((mixed >> 32) & (is_bool ? 0x01 : 0x3F));
}

// `bytes`: of the input in one row of a batch; the file has those of one.
absl::StatusOr<WarmUp::Elements> ReadElements(const Model& model, const Input& input,
                                              uint64_t bytes, const std::string& path) {
  const std::string field = absl::StrCat(path, ".input_data_file");
  const std::string subject = absl::StrCat(field, " (\"", Excerpt(input.input_data_file()), "\")");
  if (model.warm_up_folder.empty()) {
    return InvalidField(field, absl::StrCat(subject,
                                            " is given, but the files of the model come "
                                            "from a request."));
  }
  auto found = FileWithin(PathOf(model.warm_up_folder), input.input_data_file(), subject,
                          "the folder warmup of the model");
  if (!found.ok()) return WithField(found.status(), field);
  absl::StatusOr<std::string> read = ReadRegularFile(Utf8Name(*found), kMostFileBytes, subject);
  if (!read.ok()) return WithField(read.status(), field);
  if (read->size() != bytes) {
    return InvalidField(
        field, absl::StrCat(subject, " has ", read->size(), " bytes; dims take ", bytes, "."));
  }
  return [data = std::make_shared<const std::string>(*std::move(read))](uint64_t offset,
                                                                        absl::Span<std::byte> to) {
    for (std::byte& byte : to) byte = static_cast<std::byte>((*data)[offset++ % data->size()]);
  };
}

absl::StatusOr<WarmUp::Elements> ElementsOf(const Model& model, const ModelTensor& tensor,
                                            const Input& input, uint64_t row_bytes,
                                            const std::string& path) {
  switch (input.input_data_type_case()) {
    case Input::kZeroData:
      return
          [](uint64_t, absl::Span<std::byte> to) { std::fill(to.begin(), to.end(), std::byte{0}); };
    case Input::kRandomData:
      return [is_bool = tensor.is_bool](uint64_t offset, absl::Span<std::byte> to) {
        for (std::byte& byte : to) byte = RandomByte(offset++, is_bool);
      };
    case Input::kInputDataFile:
      return ReadElements(model, input, row_bytes, path);
    case Input::INPUT_DATA_TYPE_NOT_SET:
      break;
  }
  return Refuse(path, "has none of zero_data, random_data and input_data_file.");
}

}  // namespace

std::string WarmUpField(size_t index, const std::string& input) {
  const std::string path = absl::StrCat("model_warmup[", index, "]");
  return input.empty() ? path : absl::StrCat(path, ".inputs.", Excerpt(input));
}

absl::StatusOr<WarmUp> ReadWarmUp(const Model& model, size_t index) {
  const inference::ModelWarmup& config = model.warm_ups[static_cast<int>(index)];
  RETURN_IF_ERROR(CheckCounts(model, config, index));
  RETURN_IF_ERROR(CheckInputs(model, config, index));
  WarmUp warm_up = {.count = std::max(config.count(), 1u)};
  for (const ModelTensor& tensor : model.inputs) {
    const Input& input = config.inputs().at(tensor.name);
    const std::string path = WarmUpField(index, tensor.name);
    ASSIGN_OR_RETURN(TensorDesc desc, DescOf(model, tensor, input, config.batch_size(), path));
    const uint64_t bytes = ElementCount(desc) * ElementBytes(desc.data_type);
    ASSIGN_OR_RETURN(WarmUp::Elements elements,
                     ElementsOf(model, tensor, input, bytes / config.batch_size(), path));
    warm_up.inputs.push_back(std::move(desc));
    warm_up.elements.push_back(std::move(elements));
  }
  return warm_up;
}

}  // namespace opmill
