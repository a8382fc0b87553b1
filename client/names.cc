#include "client/names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "kernels/base/npy.h"

namespace opmill {
namespace {

// "DATA_TYPE_FLOAT32" -> "float32"
std::string Shorten(absl::string_view name, absl::string_view prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(name, prefix));
}

template <typename Enum, typename Parse>
absl::StatusOr<Enum> ParseEnum(absl::string_view name, absl::string_view prefix, Parse parse,
                               absl::string_view kind, absl::string_view known) {
  Enum value{};
  if (parse(absl::StrCat(prefix, absl::AsciiStrToUpper(name)), &value) && value != 0) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("There is no ", kind, " \"", name, "\"; the choices are ", known, "."));
}

}  // namespace

std::string NameOf(v1::DataType type) { return Shorten(v1::DataType_Name(type), "DATA_TYPE_"); }

std::string NameOf(v1::ReduceFunction function) {
  return Shorten(v1::ReduceFunction_Name(function), "REDUCE_FUNCTION_");
}

std::string NameOf(v1::FeatureLevel level) {
  return absl::StrReplaceAll(Shorten(v1::FeatureLevel_Name(level), "FEATURE_LEVEL_"), {{"_", "."}});
}

std::string NameOf(v1::AxisDirection direction) {
  return Shorten(v1::AxisDirection_Name(direction), "AXIS_DIRECTION_");
}

std::vector<std::string> FeatureLevelNames() {
  const google::protobuf::EnumDescriptor& known = *v1::FeatureLevel_descriptor();
  std::vector<std::string> names;
  for (int i = 1; i < known.value_count(); ++i) {  // the first is _UNSPECIFIED
    names.push_back(NameOf(static_cast<v1::FeatureLevel>(known.value(i)->number())));
  }
  return names;
}

absl::StatusOr<v1::DataType> ParseDataType(absl::string_view name) {
  return ParseEnum<v1::DataType>(
      name, "DATA_TYPE_",
      [](const std::string& full, v1::DataType* value) {
        return v1::DataType_Parse(full, value) && ElementBytes(*value) != 0;
      },
      "element type", kDataTypeNames);
}

absl::StatusOr<v1::FeatureLevel> ParseFeatureLevel(absl::string_view name) {
  return ParseEnum<v1::FeatureLevel>(
      name, "FEATURE_LEVEL_",
      [](const std::string& full, v1::FeatureLevel* value) {
        return v1::FeatureLevel_Parse(absl::StrReplaceAll(full, {{".", "_"}}), value);
      },
      "feature level", "1.0, 2.0, 2.1, 3.0, 3.1, 4.0, 4.1, 5.0, 5.1, 5.2 and 6.0 to 6.4");
}

size_t ElementBytes(v1::DataType type) {
  switch (type) {
    case v1::DATA_TYPE_INT8:
    case v1::DATA_TYPE_UINT8:
      return 1;
    case v1::DATA_TYPE_FLOAT16:
    case v1::DATA_TYPE_INT16:
    case v1::DATA_TYPE_UINT16:
      return 2;
    case v1::DATA_TYPE_FLOAT32:
    case v1::DATA_TYPE_INT32:
    case v1::DATA_TYPE_UINT32:
      return 4;
    case v1::DATA_TYPE_INT64:
    case v1::DATA_TYPE_UINT64:
      return 8;
    default:
      return 0;
  }
}

}  // namespace opmill
