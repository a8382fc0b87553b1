#include "kernels/descriptor/input_checks.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"

namespace opmill {

absl::Status CheckRank(const OperatorDesc& desc, size_t input, size_t other) {
  const size_t rank = desc.inputs[input].sizes.size();
  const size_t wanted = desc.inputs[other].sizes.size();
  if (rank == wanted) return absl::OkStatus();
  const std::string field = absl::StrCat(desc.schema->inputs[input].name, ".sizes");
  return InvalidField(field,
                      absl::StrCat(field, " has ", rank, " dimensions, but ",
                                   desc.schema->inputs[other].name, ".sizes has ", wanted, "."));
}

absl::Status CheckType(const OperatorDesc& desc, size_t input, size_t other) {
  const DataType type = desc.inputs[input].data_type;
  const DataType wanted = desc.inputs[other].data_type;
  if (type == wanted) return absl::OkStatus();
  const std::string field = absl::StrCat(desc.schema->inputs[input].name, ".data_type");
  return InvalidField(
      field, absl::StrCat(field, " (", ToString(type), ") differs from ",
                          desc.schema->inputs[other].name, ".data_type (", ToString(wanted), ")."));
}

}  // namespace opmill
