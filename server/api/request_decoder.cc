#include "server/api/request_decoder.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/reflection.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/per_thread.h"
#include "kernels/descriptor/attribute_text.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "server/api/grpc_status.h"

#undef GetMessage  // a macro of windows.h, which gRPC includes

namespace opmill {
namespace {

// Protobuf enumerations use 0 for "not given", followed by DirectML's numbers plus 1.
constexpr int kFirstOfEnum = 1;
static_assert(v1::REDUCE_FUNCTION_ARGMAX ==
              static_cast<int>(ReduceFunction::kArgMax) + kFirstOfEnum);
static_assert(v1::AXIS_DIRECTION_DECREASING ==
              static_cast<int>(AxisDirection::kDecreasing) + kFirstOfEnum);
static_assert(v1::DATA_TYPE_FLOAT32 == static_cast<int>(DataType::kFloat32));
static_assert(v1::DATA_TYPE_INT64 == static_cast<int>(DataType::kInt64));
static_assert(v1::FEATURE_LEVEL_6_4 == static_cast<int>(kNewestFeatureLevel));

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The protobuf fields of a schema, found by its names.
struct WireFields {
  const FieldDescriptor* message = nullptr;  // of v1.OperatorDesc
  std::vector<const FieldDescriptor*> inputs;
  std::vector<const FieldDescriptor*> outputs;
  std::vector<const FieldDescriptor*> attributes;
};

const FieldDescriptor* Field(const google::protobuf::Descriptor* message, absl::string_view name) {
  return message->FindFieldByName(std::string(name));
}

// In the order of Operators(); empty for operators of the named form.
const std::vector<WireFields>& AllWireFields() {
  static const auto* const all = [] {
    auto* const fields = new std::vector<WireFields>;
    for (const OperatorSchema* const schema : Operators()) {
      WireFields& of = fields->emplace_back();
      if (!schema->has_own_message()) continue;
      of.message = Field(v1::OperatorDesc::descriptor(), schema->wire_name);
      const auto* const message = of.message->message_type();
      for (const auto& input : schema->inputs) of.inputs.push_back(Field(message, input.name));
      for (const auto& output : schema->outputs) of.outputs.push_back(Field(message, output.name));
      for (const auto& attribute : schema->attributes) {
        of.attributes.push_back(Field(message, attribute.name));
      }
    }
    return fields;
  }();
  return *all;
}

// nullopt if the message has no such tensor.
absl::StatusOr<std::optional<TensorDesc>> DecodeTensorIn(const Message& from,
                                                         const FieldDescriptor* field) {
  const google::protobuf::Reflection& reflection = *from.GetReflection();
  if (!reflection.HasField(from, field)) return std::nullopt;
  const auto& tensor = static_cast<const v1::TensorDesc&>(reflection.GetMessage(from, field));
  return DecodeTensor(tensor, field->name());
}

absl::StatusOr<uint32_t> DecodeChoice(int value, const AttributeSchema& attribute) {
  const int last = static_cast<int>(attribute.choices.size());
  if (value == 0) {
    return InvalidField(attribute.name, absl::StrCat(attribute.name, " is not given."));
  }
  if (value < kFirstOfEnum || value > last) {
    return InvalidField(attribute.name,
                        absl::StrCat(attribute.name, " (", value, ") is unknown to this server; ",
                                     kFirstOfEnum, " to ", last, " are known."));
  }
  return static_cast<uint32_t>(value - kFirstOfEnum);
}

absl::StatusOr<AttributeValue> DecodeAttribute(const Message& from, const FieldDescriptor* field,
                                               const AttributeSchema& attribute) {
  const google::protobuf::Reflection& reflection = *from.GetReflection();
  switch (attribute.kind) {
    case AttributeKind::kChoice: {
      ASSIGN_OR_RETURN(const uint32_t choice,
                       DecodeChoice(reflection.GetEnumValue(from, field), attribute));
      return AttributeValue(choice);
    }
    case AttributeKind::kAxes: {
      std::vector<uint32_t> axes(static_cast<size_t>(reflection.FieldSize(from, field)));
      for (size_t i = 0; i < axes.size(); ++i) {
        axes[i] = reflection.GetRepeatedUInt32(from, field, static_cast<int>(i));
      }
      return AttributeValue(std::move(axes));
    }
    case AttributeKind::kFlag:
      return AttributeValue(reflection.GetBool(from, field) ? 1u : 0u);
    default:  // the messages of operators have no other kinds
      break;
  }
  return AttributeValue(reflection.GetUInt32(from, field));
}

absl::StatusOr<OperatorDesc> Decode(const OperatorSchema& schema, const WireFields& fields,
                                    const Message& from) {
  OperatorDesc to = {.schema = &schema};
  to.attributes.resize(schema.attributes.size());
  const auto decode_attribute = [&](size_t i) {
    absl::StatusOr<AttributeValue> value =
        DecodeAttribute(from, fields.attributes[i], schema.attributes[i]);
    if (!value.ok()) return value.status();
    to.attributes[i] = *std::move(value);
    return absl::OkStatus();
  };
  if (schema.has_functions()) RETURN_IF_ERROR(decode_attribute(schema.function_attribute));
  for (const FieldDescriptor* const field : fields.inputs) {
    ASSIGN_OR_RETURN(std::optional<TensorDesc> input, DecodeTensorIn(from, field));
    if (!input.has_value()) {
      return InvalidField(field->name(), absl::StrCat(field->name(), " is not given."));
    }
    to.inputs.push_back(*std::move(input));
  }
  for (const FieldDescriptor* const field : fields.outputs) {
    ASSIGN_OR_RETURN(to.outputs.emplace_back(), DecodeTensorIn(from, field));
  }
  for (size_t i = 0; i < schema.attributes.size(); ++i) {
    if (i != schema.function_attribute) RETURN_IF_ERROR(decode_attribute(i));
  }
  return to;
}

// The number that an attribute holds, in any of its forms.
std::optional<Scalar> NumberIn(const v1::AttributeValue& value) {
  switch (value.value_case()) {
    case v1::AttributeValue::kNumber:
      return value.number();
    case v1::AttributeValue::kSignedNumber:
      return value.signed_number();
    case v1::AttributeValue::kUnsignedNumber:
      return value.unsigned_number();
    default:
      return std::nullopt;
  }
}

// The number as an integer type; nullopt if it is no integer of that range.
template <typename T>
std::optional<T> IntegerIn(const v1::AttributeValue& value) {
  if (value.value_case() == v1::AttributeValue::kSignedNumber) {
    if (std::in_range<T>(value.signed_number())) return static_cast<T>(value.signed_number());
  } else if (value.value_case() == v1::AttributeValue::kUnsignedNumber) {
    if (std::in_range<T>(value.unsigned_number())) return static_cast<T>(value.unsigned_number());
  }
  return std::nullopt;
}

// The list as one of T; nullopt if the value is no list, or if not all of its numbers are of T.
template <typename T>
std::optional<AttributeValue> ListIn(const v1::AttributeValue& value) {
  const auto convert = [](const auto& list) -> std::optional<AttributeValue> {
    for (const auto number : list.values()) {
      if constexpr (std::is_floating_point_v<T>)
        continue;
      else if (!std::in_range<T>(number))
        return std::nullopt;
    }
    return std::vector<T>(list.values().begin(), list.values().end());
  };
  if (value.has_unsigned_numbers()) return convert(value.unsigned_numbers());
  if (value.has_signed_numbers()) return convert(value.signed_numbers());
  if (!std::is_floating_point_v<T> || !value.has_numbers()) return std::nullopt;
  return AttributeValue(
      std::vector<T>(value.numbers().values().begin(), value.numbers().values().end()));
}

// The value in the form that the attribute has. InvalidArgument with the words that follow its
// name.
absl::StatusOr<AttributeValue> DecodeValue(const AttributeSchema& attribute,
                                           const v1::AttributeValue& value) {
  const std::optional<Scalar> number = NumberIn(value);
  switch (attribute.kind) {
    case AttributeKind::kChoice:
      if (value.value_case() != v1::AttributeValue::kChoice) break;
      return ParseAttribute(attribute, value.choice());
    case AttributeKind::kFlag:
      if (value.value_case() != v1::AttributeValue::kFlag) break;
      return AttributeValue(value.flag() ? 1u : 0u);
    case AttributeKind::kNumber:
    case AttributeKind::kAxis:
      if (const auto integer = IntegerIn<uint32_t>(value)) return AttributeValue(*integer);
      return absl::InvalidArgumentError("is not an integer from 0 to 4294967295");
    case AttributeKind::kSigned:
      if (const auto integer = IntegerIn<int32_t>(value)) return AttributeValue(*integer);
      return absl::InvalidArgumentError("is not an integer from -2147483648 to 2147483647");
    case AttributeKind::kFloat:
      if (!number.has_value()) break;
      return AttributeValue(
          std::visit([](auto held) { return static_cast<float>(held); }, *number));
    case AttributeKind::kScalar:
      if (!number.has_value()) break;
      return AttributeValue(*number);
    case AttributeKind::kAxes:
    case AttributeKind::kNumbers:
      if (auto list = ListIn<uint32_t>(value)) return *std::move(list);
      return absl::InvalidArgumentError("is not a list of integers from 0 to 4294967295");
    case AttributeKind::kSignedNumbers:
      if (auto list = ListIn<int32_t>(value)) return *std::move(list);
      return absl::InvalidArgumentError("is not a list of integers from -2147483648 to 2147483647");
    case AttributeKind::kFloatNumbers:
      if (auto list = ListIn<float>(value)) return *std::move(list);
      return absl::InvalidArgumentError("is not a list of numbers");
  }
  return absl::InvalidArgumentError("is not a value of the kind that the operator takes");
}

absl::StatusOr<OperatorDesc> DecodeNamed(const v1::NamedOperatorDesc& from) {
  const OperatorSchema* const found = FindSchema(from.name());
  if (found == nullptr) {
    return InvalidField("name", absl::StrCat("name (\"", Excerpt(from.name()),
                                             "\") is none of the operators of this server; "
                                             "GetServerInfo lists them."));
  }
  const OperatorSchema& schema = *found;
  OperatorDesc to = {.schema = &schema};
  const auto check_count = [&](absl::string_view field, int given, size_t least, size_t most) {
    if (static_cast<size_t>(given) >= least && static_cast<size_t>(given) <= most) {
      return absl::OkStatus();
    }
    return InvalidField(
        field, absl::StrCat(field, " has ", given, given == 1 ? " tensor" : " tensors", ", but ",
                            schema.name, " has ", most, "."));
  };
  RETURN_IF_ERROR(
      check_count("inputs", from.inputs_size(), schema.required_inputs(), schema.inputs.size()));
  RETURN_IF_ERROR(check_count("outputs", from.outputs_size(), 0, schema.outputs.size()));
  for (int i = 0; i < from.inputs_size(); ++i) {
    ASSIGN_OR_RETURN(TensorDesc input,
                     DecodeTensor(from.inputs(i), absl::StrCat("inputs[", i, "]")));
    to.inputs.push_back(std::move(input));
  }
  to.outputs.resize(schema.outputs.size());
  for (int i = 0; i < from.outputs_size(); ++i) {
    ASSIGN_OR_RETURN(to.outputs[static_cast<size_t>(i)],
                     DecodeTensor(from.outputs(i), absl::StrCat("outputs[", i, "]")));
  }
  size_t known = 0;
  for (const AttributeSchema& attribute : schema.attributes) {
    const auto given = from.attributes().find(std::string(attribute.name));
    const bool is_given = given != from.attributes().end();
    known += is_given ? 1 : 0;
    absl::StatusOr<AttributeValue> value =
        is_given ? DecodeValue(attribute, given->second) : DefaultOf(attribute);
    if (!value.ok()) {
      const std::string choice = is_given && given->second.has_choice()
                                     ? absl::StrCat(" (\"", Excerpt(given->second.choice()), "\")")
                                     : "";
      return InvalidField(absl::StrCat("attributes[", attribute.name, "]"),
                          absl::StrCat(attribute.name, choice, " ", value.status().message(), "."));
    }
    to.attributes.push_back(*std::move(value));
  }
  if (known == from.attributes().size()) return to;
  for (const auto& [name, unused] : from.attributes()) {
    if (schema.AttributeIndex(name) < schema.attributes.size()) continue;
    return InvalidField("attributes",
                        absl::StrCat(schema.name, " has no attribute \"", Excerpt(name), "\"."));
  }
  return to;
}

// The field of the named form for one of the schema: "b.sizes[0]" -> "inputs[1].sizes[0]".
std::string NamedField(const OperatorSchema& schema, absl::string_view field) {
  const absl::string_view name = field.substr(0, field.find_first_of(".["));
  const absl::string_view rest = field.substr(name.size());
  for (size_t i = 0; i < schema.inputs.size(); ++i) {
    if (schema.inputs[i].name == name) return absl::StrCat("inputs[", i, "]", rest);
  }
  for (size_t i = 0; i < schema.outputs.size(); ++i) {
    if (schema.outputs[i].name == name) return absl::StrCat("outputs[", i, "]", rest);
  }
  if (schema.AttributeIndex(name) == schema.attributes.size()) return std::string(field);
  return absl::StrCat("attributes[", name, "]");
}

// The descriptor, and the path of its message below the request.
struct Decoded {
  absl::string_view wire_name;  // empty if the request names no operator
  absl::StatusOr<OperatorDesc> desc;

  absl::Status UnderItsPath(const absl::Status& status) const {
    if (wire_name.empty()) return UnderPath("operator", status);
    return UnderPath(absl::StrCat("operator.", wire_name), status);
  }
};

Decoded DecodeOneof(const v1::OperatorDesc& from) {
  if (from.has_named()) return {"named", DecodeNamed(from.named())};
  const absl::Span<const OperatorSchema* const> operators = Operators();
  for (size_t i = 0; i < operators.size(); ++i) {
    const WireFields& fields = AllWireFields()[i];
    if (fields.message == nullptr) continue;
    if (fields.message->number() != static_cast<int>(from.desc_case())) continue;
    const Message& message = from.GetReflection()->GetMessage(from, fields.message);
    return {operators[i]->wire_name, Decode(*operators[i], fields, message)};
  }
  std::vector<absl::string_view> names;
  for (const OperatorSchema* const schema : operators) {
    if (schema->has_own_message()) names.push_back(schema->wire_name);
  }
  return {"", WithField(absl::InvalidArgumentError(
                            absl::StrCat("operator names none of the operators of this server: ",
                                         absl::StrJoin(names, ", "), ".")),
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

// The operators that a thread has decoded lately. Callers send the same few again and again, and
// decoding and checking one takes more than twice as long as finding it here. Not thread-safe.
class RecentOperators {
 public:
  // Must be called first: the other functions are about this operator.
  void SetKey(const v1::OperatorDesc& desc, FeatureLevel level) {
    entry_ = nullptr;
    if (desc.ByteSizeLong() > kMostBytes) return;
    desc.SerializeToString(&key_);
    absl::StrAppend(&key_, static_cast<uint32_t>(level));
    entry_ = &entries_[absl::HashOf(key_) % kEntries];
  }
  const OperatorDesc* Find() const {
    return entry_ != nullptr && entry_->key == key_ ? &entry_->desc : nullptr;
  }
  void Keep(const OperatorDesc& desc) {
    if (entry_ != nullptr) *entry_ = {key_, desc};
  }

 private:
  static constexpr size_t kEntries = 16;
  static constexpr size_t kMostBytes = 256;

  struct Entry {
    std::string key;  // empty if there is no operator
    OperatorDesc desc;
  };

  std::string key_;
  Entry* entry_ = nullptr;  // null if the operator is too large to be kept
  std::array<Entry, kEntries> entries_;
};

absl::StatusOr<OperatorDesc> DecodeAndValidate(const v1::OperatorDesc& desc, FeatureLevel level) {
  Decoded decoded = DecodeOneof(desc);
  if (!decoded.desc.ok()) return decoded.UnderItsPath(decoded.desc.status());
  const OperatorSchema& schema = *decoded.desc->schema;
  absl::StatusOr<OperatorDesc> valid = Validate(*std::move(decoded.desc), level);
  if (valid.ok()) return valid;
  const std::string field = FieldOf(valid.status()).value_or("");
  // The level is a field next to the operator, not inside it.
  if (field == "feature_level") return valid;
  if (schema.has_own_message()) return decoded.UnderItsPath(valid.status());
  return decoded.UnderItsPath(WithField(valid.status(), NamedField(schema, field)));
}

}  // namespace

absl::StatusOr<TensorDesc> DecodeTensor(const v1::TensorDesc& desc, absl::string_view field) {
  if (desc.data_type() == v1::DATA_TYPE_UNSPECIFIED) {  // which the engine cannot represent
    const std::string path = absl::StrCat(field, ".data_type");
    return InvalidField(path, absl::StrCat(path, " is not given."));
  }
  return TensorDesc{.data_type = static_cast<DataType>(desc.data_type()),
                    .sizes = {desc.sizes().begin(), desc.sizes().end()},
                    .strides = {desc.strides().begin(), desc.strides().end()}};
}

absl::StatusOr<OperatorDesc> DecodeOperator(const v1::OperatorDesc& desc,
                                            std::optional<v1::FeatureLevel> feature_level) {
  ASSIGN_OR_RETURN(const FeatureLevel level, DecodeFeatureLevel(feature_level));
  static PerThread<RecentOperators> all_recent;
  PerThread<RecentOperators>::Use recent(all_recent);
  recent->SetKey(desc, level);
  if (const OperatorDesc* const found = recent->Find()) return *found;
  absl::StatusOr<OperatorDesc> valid = DecodeAndValidate(desc, level);
  if (valid.ok()) recent->Keep(*valid);
  return valid;
}

void EncodeTensor(const TensorDesc& desc, v1::TensorDesc& to) {
  to.set_data_type(EncodeDataType(desc.data_type));
  to.mutable_sizes()->Add(desc.sizes.begin(), desc.sizes.end());
  to.mutable_strides()->Add(desc.strides.begin(), desc.strides.end());
}

v1::DataType EncodeDataType(DataType type) { return static_cast<v1::DataType>(type); }

v1::FeatureLevel EncodeFeatureLevel(FeatureLevel level) {
  return static_cast<v1::FeatureLevel>(level);
}

}  // namespace opmill
