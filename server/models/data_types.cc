#include "server/models/data_types.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"

namespace opmill {
namespace {

struct TypeName {
  DataType type;
  absl::string_view name;
  inference::DataType config_type;
};
constexpr TypeName kTypeNames[] = {{DataType::kFloat32, "FP32", inference::TYPE_FP32},
                                   {DataType::kFloat16, "FP16", inference::TYPE_FP16},
                                   {DataType::kInt64, "INT64", inference::TYPE_INT64},
                                   {DataType::kInt32, "INT32", inference::TYPE_INT32},
                                   {DataType::kInt16, "INT16", inference::TYPE_INT16},
                                   {DataType::kInt8, "INT8", inference::TYPE_INT8},
                                   {DataType::kUint64, "UINT64", inference::TYPE_UINT64},
                                   {DataType::kUint32, "UINT32", inference::TYPE_UINT32},
                                   {DataType::kUint16, "UINT16", inference::TYPE_UINT16},
                                   {DataType::kUint8, "UINT8", inference::TYPE_UINT8}};

std::string AllNames() {
  return absl::StrJoin(kTypeNames, ", ", [](std::string* out, const TypeName& type) {
    absl::StrAppend(out, type.name);
  });
}

}  // namespace

absl::string_view NameOf(DataType type) {
  for (const TypeName& known : kTypeNames) {
    if (known.type == type) return known.name;
  }
  return "";
}

absl::StatusOr<DataType> DataTypeFrom(absl::string_view name, absl::string_view field) {
  for (const TypeName& known : kTypeNames) {
    if (known.name == name) return known.type;
  }
  return InvalidField(
      field, absl::StrCat(field, " (\"", Excerpt(name), "\") is none of ", AllNames(), "."));
}

inference::DataType ConfigTypeOf(DataType type) {
  for (const TypeName& known : kTypeNames) {
    if (known.type == type) return known.config_type;
  }
  return inference::TYPE_INVALID;
}

absl::StatusOr<DataType> DecodeDataType(inference::DataType type, absl::string_view field) {
  for (const TypeName& known : kTypeNames) {
    if (known.config_type == type) return known.type;
  }
  if (type == inference::TYPE_INVALID) {
    return InvalidField(field, absl::StrCat(field, " is not given."));
  }
  return InvalidField(field, absl::StrCat(field, " (", inference::DataType_Name(type),
                                          ") is the type of none of ", AllNames(), "."));
}

}  // namespace opmill
