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

void EncodeTensorField(const TensorDesc& tensor, absl::string_view name, Message& to) {
  auto& encoded =
      static_cast<v1::TensorDesc&>(*to.GetReflection()->MutableMessage(&to, Field(to, name)));
  encoded.set_data_type(static_cast<v1::DataType>(tensor.data_type));
  encoded.mutable_sizes()->Add(tensor.sizes.begin(), tensor.sizes.end());
  encoded.mutable_strides()->Add(tensor.strides.begin(), tensor.strides.end());
}

void EncodeAttribute(const AttributeSchema& attribute, const AttributeValues& values, Message& to) {
  const FieldDescriptor* const field = Field(to, attribute.name);
  const google::protobuf::Reflection& reflection = *to.GetReflection();
  switch (attribute.kind) {
    case AttributeKind::kChoice:
      return reflection.SetEnumValue(&to, field, static_cast<int>(values.front()) + kFirstChoice);
    case AttributeKind::kAxes:
      for (const uint32_t axis : values) reflection.AddUInt32(&to, field, axis);
      return;
    case AttributeKind::kFlag:
      return reflection.SetBool(&to, field, values.front() != 0);
    case AttributeKind::kNumber:
    case AttributeKind::kAxis:
      return reflection.SetUInt32(&to, field, values.front());
  }
}

}  // namespace

v1::OperatorDesc EncodeOperator(const OperatorDesc& desc) {
  const OperatorSchema& schema = *desc.schema;
  v1::OperatorDesc encoded;
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
