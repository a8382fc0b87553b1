#include "tests/support/encode_operator.h"

#include <string>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "kernels/descriptor/operator_schema.h"
#include "server/api/request_decoder.h"

namespace opmill {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const FieldDescriptor* Field(const Message& message, absl::string_view name) {
  return message.GetDescriptor()->FindFieldByName(std::string(name));
}

void EncodeTensorField(const TensorDesc& tensor, absl::string_view name, Message& to) {
  EncodeTensor(tensor, static_cast<v1::TensorDesc&>(
                           *to.GetReflection()->MutableMessage(&to, Field(to, name))));
}

void EncodeAttribute(const AttributeSchema& attribute, const AttributeValues& values, Message& to) {
  const FieldDescriptor* const field = Field(to, attribute.name);
  const google::protobuf::Reflection& reflection = *to.GetReflection();
  switch (attribute.kind) {
    case AttributeKind::kChoice:  // the contract's numbers are DirectML's plus 1
      return reflection.SetEnumValue(&to, field, static_cast<int>(values.front()) + 1);
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

}  // namespace opmill
