#include "server/api/request_decoder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/validate.h"
#include "server/api/grpc_status.h"

namespace opmill {
namespace {

// The enums of the wire that start at 1 where DirectML's start at 0.
constexpr int kFirstOfEnum = 1;
static_assert(v1::REDUCE_FUNCTION_ARGMAX ==
              static_cast<int>(ReduceFunction::kArgMax) + kFirstOfEnum);
static_assert(v1::REDUCE_FUNCTION_LOG_SUM_EXP ==
              static_cast<int>(ReduceFunction::kLogSumExp) + kFirstOfEnum);
static_assert(v1::REDUCE_FUNCTION_SUM_SQUARE ==
              static_cast<int>(ReduceFunction::kSumSquare) + kFirstOfEnum);
static_assert(v1::AXIS_DIRECTION_DECREASING ==
              static_cast<int>(AxisDirection::kDecreasing) + kFirstOfEnum);
static_assert(v1::DATA_TYPE_FLOAT32 == static_cast<int>(DataType::kFloat32));
static_assert(v1::DATA_TYPE_INT64 == static_cast<int>(DataType::kInt64));
static_assert(v1::FEATURE_LEVEL_6_4 == static_cast<int>(kNewestFeatureLevel));

TensorDesc DecodeTensor(const v1::TensorDesc& desc) {
  return {.data_type = static_cast<DataType>(desc.data_type()),
          .sizes = {desc.sizes().begin(), desc.sizes().end()},
          .strides = {desc.strides().begin(), desc.strides().end()}};
}

// Says of a tensor's data type what the engine, which knows no _UNSPECIFIED, cannot.
absl::Status CheckGiven(const v1::TensorDesc& desc, absl::string_view field) {
  if (desc.data_type() != v1::DATA_TYPE_UNSPECIFIED) return absl::OkStatus();
  const std::string path = absl::StrCat(field, ".data_type");
  return InvalidField(path, absl::StrCat(path, " is not given."));
}

absl::Status DecodeInput(bool has, const v1::TensorDesc& from, TensorDesc& to) {
  if (!has) return InvalidField("input", "input is not given.");
  RETURN_IF_ERROR(CheckGiven(from, "input"));
  to = DecodeTensor(from);
  return absl::OkStatus();
}

absl::Status DecodeOutput(absl::string_view field, bool has, const v1::TensorDesc& from,
                          std::optional<TensorDesc>& to) {
  if (!has) return absl::OkStatus();
  RETURN_IF_ERROR(CheckGiven(from, field));
  to = DecodeTensor(from);
  return absl::OkStatus();
}

template <typename Enum>
absl::StatusOr<Enum> DecodeEnum(int value, int last, absl::string_view field) {
  if (value == 0) return InvalidField(field, absl::StrCat(field, " is not given."));
  if (value < kFirstOfEnum || value > last) {
    return InvalidField(field, absl::StrCat(field, " (", value, ") is unknown to this server; ",
                                            kFirstOfEnum, " to ", last, " are known."));
  }
  return static_cast<Enum>(value - kFirstOfEnum);
}

absl::StatusOr<AxisDirection> DecodeDirection(v1::AxisDirection direction) {
  return DecodeEnum<AxisDirection>(direction, v1::AXIS_DIRECTION_DECREASING, "axis_direction");
}

template <typename Desc>
absl::StatusOr<OperatorDesc> Decode(const Desc& from, Extreme extreme) {
  ArgReduceDesc to{.extreme = extreme, .axes = {from.axes().begin(), from.axes().end()}};
  RETURN_IF_ERROR(DecodeInput(from.has_input(), from.input(), to.input));
  RETURN_IF_ERROR(DecodeOutput("output", from.has_output(), from.output(), to.output));
  ASSIGN_OR_RETURN(to.axis_direction, DecodeDirection(from.axis_direction()));
  return to;
}

absl::StatusOr<OperatorDesc> Decode(const v1::ReduceDesc& from) {
  ReduceDesc to{.axes = {from.axes().begin(), from.axes().end()}};
  ASSIGN_OR_RETURN(to.function, DecodeEnum<ReduceFunction>(
                                    from.function(), v1::REDUCE_FUNCTION_SUM_SQUARE, "function"));
  RETURN_IF_ERROR(DecodeInput(from.has_input(), from.input(), to.input));
  RETURN_IF_ERROR(DecodeOutput("output", from.has_output(), from.output(), to.output));
  return to;
}

absl::StatusOr<OperatorDesc> Decode(const v1::TopKDesc& from) {
  TopKDesc to{.axis = from.axis(), .k = from.k()};
  RETURN_IF_ERROR(DecodeInput(from.has_input(), from.input(), to.input));
  RETURN_IF_ERROR(DecodeOutput("output_values", from.has_output_values(), from.output_values(),
                               to.output_values));
  RETURN_IF_ERROR(DecodeOutput("output_indices", from.has_output_indices(), from.output_indices(),
                               to.output_indices));
  ASSIGN_OR_RETURN(to.axis_direction, DecodeDirection(from.axis_direction()));
  return to;
}

absl::StatusOr<OperatorDesc> Decode(const v1::HardmaxDesc& from) {
  HardmaxDesc to{.axes = {from.axes().begin(), from.axes().end()}};
  RETURN_IF_ERROR(DecodeInput(from.has_input(), from.input(), to.input));
  RETURN_IF_ERROR(DecodeOutput("output", from.has_output(), from.output(), to.output));
  return to;
}

struct Decoded {
  const char* path;
  absl::StatusOr<OperatorDesc> desc;
};

Decoded DecodeOneof(const v1::OperatorDesc& from) {
  switch (from.desc_case()) {
    case v1::OperatorDesc::kArgMin:
      return {"operator.arg_min", Decode(from.arg_min(), Extreme::kMin)};
    case v1::OperatorDesc::kArgMax:
      return {"operator.arg_max", Decode(from.arg_max(), Extreme::kMax)};
    case v1::OperatorDesc::kReduce:
      return {"operator.reduce", Decode(from.reduce())};
    case v1::OperatorDesc::kTopK:
      return {"operator.top_k", Decode(from.top_k())};
    case v1::OperatorDesc::kHardmax:
      return {"operator.hardmax", Decode(from.hardmax())};
    case v1::OperatorDesc::DESC_NOT_SET:
      break;
  }
  return {"operator",
          WithField(absl::InvalidArgumentError(
                        "operator names none of the operators of this server: arg_min, arg_max, "
                        "reduce, top_k, hardmax."),
                    "desc")};
}

absl::StatusOr<FeatureLevel> DecodeFeatureLevel(std::optional<v1::FeatureLevel> level) {
  if (!level.has_value()) return kNewestFeatureLevel;
  const FeatureLevel decoded = static_cast<FeatureLevel>(*level);
  if (IsKnown(decoded)) return decoded;
  return InvalidField("feature_level",
                      absl::StrCat("feature_level (", static_cast<int>(*level), ") is none of ",
                                   absl::StrJoin(kAllFeatureLevels, ", ",
                                                 [](std::string* out, FeatureLevel known) {
                                                   absl::StrAppend(out, ToString(known), " (",
                                                                   static_cast<uint32_t>(known),
                                                                   ")");
                                                 }),
                                   "; leave it out for the newest."));
}

}  // namespace

absl::StatusOr<OperatorDesc> DecodeOperator(const v1::OperatorDesc& desc,
                                            std::optional<v1::FeatureLevel> feature_level) {
  ASSIGN_OR_RETURN(const FeatureLevel level, DecodeFeatureLevel(feature_level));
  Decoded decoded = DecodeOneof(desc);
  if (!decoded.desc.ok()) return UnderPath(decoded.path, decoded.desc.status());
  absl::StatusOr<OperatorDesc> valid = Validate(*std::move(decoded.desc), level);
  // The level stands beside the operator, not in it.
  if (valid.ok() || FieldOf(valid.status()) == "feature_level") return valid;
  return UnderPath(decoded.path, valid.status());
}

void EncodeTensor(const TensorDesc& desc, v1::TensorDesc& to) {
  to.set_data_type(EncodeDataType(desc.data_type));
  to.mutable_sizes()->Add(desc.sizes.begin(), desc.sizes.end());
  to.mutable_strides()->Add(desc.strides.begin(), desc.strides.end());
}

v1::DataType EncodeDataType(DataType type) { return static_cast<v1::DataType>(type); }

v1::ReduceFunction EncodeReduceFunction(ReduceFunction function) {
  return static_cast<v1::ReduceFunction>(static_cast<int>(function) + kFirstOfEnum);
}

v1::FeatureLevel EncodeFeatureLevel(FeatureLevel level) {
  return static_cast<v1::FeatureLevel>(level);
}

}  // namespace opmill
