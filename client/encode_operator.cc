#include "client/encode_operator.h"

#include <string>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {
namespace {

// Types have the same numbers in the contract and the engine; choices are DirectML's plus 1.
constexpr int kFirstChoice = 1;
static_assert(v1::DATA_TYPE_FLOAT32 == static_cast<int>(DataType::kFloat32));
static_assert(v1::DATA_TYPE_INT64 == static_cast<int>(DataType::kInt64));
static_assert(v1::AXIS_DIRECTION_INCREASING ==
              static_cast<int>(AxisDirection::kIncreasing) + kFirstChoice);

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const FieldDescriptor* Field(const Message& message, absl::string_view name) {
  return message.GetDescriptor()->FindFieldByName(std::string(name));
}

void EncodeTensor(const TensorDesc& tensor, v1::TensorDesc& encoded) {
  encoded.set_data_type(static_cast<v1::DataType>(tensor.data_type));
  encoded.mutable_sizes()->Add(tensor.sizes.begin(), tensor.sizes.end());
  encoded.mutable_strides()->Add(tensor.strides.begin(), tensor.strides.end());
}

void EncodeTensorField(const TensorDesc& tensor, absl::string_view name, Message& to) {
  EncodeTensor(tensor, static_cast<v1::TensorDesc&>(
                           *to.GetReflection()->MutableMessage(&to, Field(to, name))));
}

void EncodeValue(uint32_t number, v1::AttributeValue& to) { to.set_unsigned_number(number); }
void EncodeValue(uint64_t number, v1::AttributeValue& to) { to.set_unsigned_number(number); }
void EncodeValue(int32_t number, v1::AttributeValue& to) { to.set_signed_number(number); }
void EncodeValue(int64_t number, v1::AttributeValue& to) { to.set_signed_number(number); }
void EncodeValue(double number, v1::AttributeValue& to) { to.set_number(number); }
void EncodeValue(const Scalar& scalar, v1::AttributeValue& to) {
  std::visit([&](auto number) { EncodeValue(number, to); }, scalar);
}
void EncodeValue(const std::vector<uint32_t>& list, v1::AttributeValue& to) {
  to.mutable_unsigned_numbers()->mutable_values()->Add(list.begin(), list.end());
}
void EncodeValue(const std::vector<int32_t>& list, v1::AttributeValue& to) {
  to.mutable_signed_numbers()->mutable_values()->Add(list.begin(), list.end());
}
void EncodeValue(const std::vector<float>& list, v1::AttributeValue& to) {
  to.mutable_numbers()->mutable_values()->Add(list.begin(), list.end());
}

void EncodeNamed(const OperatorDesc& desc, v1::NamedOperatorDesc& to) {
  const OperatorSchema& schema = *desc.schema;
  to.set_name(std::string(schema.name));
  for (const TensorDesc& input : desc.inputs) EncodeTensor(input, *to.add_inputs());
  for (const std::optional<TensorDesc>& output : desc.outputs) {
    if (output.has_value()) EncodeTensor(*output, *to.add_outputs());
  }
  for (size_t i = 0; i < desc.attributes.size(); ++i) {
    const AttributeSchema& attribute = schema.attributes[i];
    v1::AttributeValue& value = (*to.mutable_attributes())[std::string(attribute.name)];
    if (attribute.kind == AttributeKind::kChoice) {
      value.set_choice(std::string(ChoiceName(attribute, std::get<uint32_t>(desc.attributes[i]))));
    } else if (attribute.kind == AttributeKind::kFlag) {
      value.set_flag(std::get<uint32_t>(desc.attributes[i]) != 0);
    } else {
      std::visit([&](const auto& held) { EncodeValue(held, value); }, desc.attributes[i]);
    }
  }
}

void EncodeAttribute(const AttributeSchema& attribute, const AttributeValue& value, Message& to) {
  const FieldDescriptor* const field = Field(to, attribute.name);
  const google::protobuf::Reflection& reflection = *to.GetReflection();
  switch (attribute.kind) {
    case AttributeKind::kChoice:
      return reflection.SetEnumValue(&to, field,
                                     static_cast<int>(std::get<uint32_t>(value)) + kFirstChoice);
    case AttributeKind::kAxes:
      for (const uint32_t axis : std::get<std::vector<uint32_t>>(value))
        reflection.AddUInt32(&to, field, axis);
      return;
    case AttributeKind::kFlag:
      return reflection.SetBool(&to, field, std::get<uint32_t>(value) != 0);
    default:  // the messages of operators have no other kinds
      return reflection.SetUInt32(&to, field, std::get<uint32_t>(value));
  }
}

}  // namespace

v1::OperatorDesc EncodeOperator(const OperatorDesc& desc) {
  const OperatorSchema& schema = *desc.schema;
  v1::OperatorDesc encoded;
  if (!schema.has_own_message()) {
    EncodeNamed(desc, *encoded.mutable_named());
    return encoded;
  }
  Message& to =
      *encoded.GetReflection()->MutableMessage(&encoded, Field(encoded, schema.wire_name));
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    EncodeTensorField(desc.inputs[i], schema.inputs[i].name, to);
  }
  for (size_t i = 0; i < desc.outputs.size(); ++i) {
    if (desc.outputs[i].has_value()) {
      EncodeTensorField(*desc.outputs[i], schema.outputs[i].name, to);
    }
  }
  for (size_t i = 0; i < desc.attributes.size(); ++i) {
    EncodeAttribute(schema.attributes[i], desc.attributes[i], to);
  }
  return encoded;
}

TensorDesc TensorDescOf(const v1::TensorDesc& desc) {
  return {.data_type = static_cast<DataType>(desc.data_type()),
          .sizes = {desc.sizes().begin(), desc.sizes().end()},
          .strides = {desc.strides().begin(), desc.strides().end()}};
}

}  // namespace opmill
