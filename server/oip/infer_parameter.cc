#include "server/oip/infer_parameter.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"

namespace opmill::oip {

std::string TextOf(const inference::InferParameter& value) {
  switch (value.parameter_choice_case()) {
    case inference::InferParameter::kBoolParam:
      return value.bool_param() ? "true" : "false";
    case inference::InferParameter::kInt64Param:
      return absl::StrCat(value.int64_param());
    case inference::InferParameter::kUint64Param:
      return absl::StrCat(value.uint64_param());
    case inference::InferParameter::kDoubleParam:
      return absl::StrCat(value.double_param());
    case inference::InferParameter::kStringParam:
      return value.string_param();
    case inference::InferParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  return "";
}

absl::StatusOr<uint64_t> UnsignedFrom(const inference::InferParameter& value,
                                      const std::string& path) {
  const std::string text = TextOf(value);
  uint64_t number = 0;
  if (absl::SimpleAtoi(text, &number)) return number;
  return InvalidField(
      path, absl::StrCat(path, " (\"", Excerpt(text), "\") is not an integer of at least 0."));
}

}  // namespace opmill::oip
