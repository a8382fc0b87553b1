#include "server/oip/shared_parameters.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "server/api/resident_tensors.h"
#include "server/oip/infer_parameter.h"

namespace opmill::oip {
namespace {

constexpr absl::string_view kRegion = "parameters.shared_memory_region";
constexpr absl::string_view kOffset = "parameters.shared_memory_offset";
constexpr absl::string_view kByteSize = "parameters.shared_memory_byte_size";
// Describe binary tensors over HTTP. KServe's client sends them over gRPC too.
constexpr absl::string_view kBinaryData = "parameters.binary_data";
constexpr absl::string_view kBinaryDataSize = "parameters.binary_data_size";

std::string Below(absl::string_view path, absl::string_view name) {
  return absl::StrCat(path, ".", name);
}

// "byte_size" becomes "parameters.shared_memory_byte_size".
absl::Status NamingParameter(absl::string_view path, absl::Status status) {
  const std::optional<std::string> field = FieldOf(status);
  if (!field.has_value()) return status;
  return WithField(std::move(status), Below(path, *field == "offset"      ? kOffset
                                                  : *field == "byte_size" ? kByteSize
                                                                          : kRegion));
}

}  // namespace

std::string ByteSizePath(absl::string_view path) { return Below(path, kByteSize); }

absl::StatusOr<std::optional<SharedTensor>> OpenShared(
    const google::protobuf::Map<std::string, inference::InferParameter>& parameters,
    const std::string& path, size_t index, const CallerPlaces& caller) {
  bool is_shared = false;
  std::optional<std::string> region;
  uint64_t offset = 0;
  std::optional<uint64_t> byte_size;
  for (const auto& [name, value] : parameters) {
    const std::string full_name = absl::StrCat("parameters.", Excerpt(name));
    if (full_name == kBinaryData || full_name == kBinaryDataSize) continue;
    is_shared = true;
    const std::string field = Below(path, full_name);
    if (full_name == kRegion) {
      region = TextOf(value);
    } else if (full_name == kOffset) {
      ASSIGN_OR_RETURN(offset, UnsignedFrom(value, field));
    } else if (full_name == kByteSize) {
      ASSIGN_OR_RETURN(byte_size, UnsignedFrom(value, field));
    } else {
      return InvalidField(field, absl::StrCat(field, " (\"", Excerpt(TextOf(value)),
                                              "\") is not a parameter that this server knows."));
    }
  }
  if (!is_shared) return std::nullopt;
  if (!region.has_value() || !byte_size.has_value()) {
    const std::string field = Below(path, region.has_value() ? kByteSize : kRegion);
    return InvalidField(field, absl::StrCat(field, " is not given."));
  }
  absl::StatusOr<SharedRange> range = caller.places.memory.OpenRegion(
      SharedMemoryCallerOf(caller.origin), *region, offset, *byte_size);
  if (!range.ok()) return NamingParameter(path, range.status());
  return SharedTensor{index, *std::move(range), path, kRegion};
}

absl::StatusOr<std::shared_ptr<const ResidentTensor>> FindResident(
    const google::protobuf::Map<std::string, inference::InferParameter>& parameters,
    const std::string& path, const TensorDesc& input, const CallerPlaces& caller) {
  const auto given = parameters.find("tensor");
  if (given == parameters.end()) return nullptr;
  const std::string field = Below(path, "parameters.tensor");
  if (parameters.size() > 1) {
    return InvalidField(field, absl::StrCat(field,
                                            " is given beside other parameters; an input has "
                                            "one source."));
  }
  auto found = caller.places.tensors.Find(caller.origin.caller, TextOf(given->second));
  if (!found.ok()) return WithField(found.status(), field);
  RETURN_IF_ERROR(CheckFits(input, **found, field));
  return *std::move(found);
}

}  // namespace opmill::oip
