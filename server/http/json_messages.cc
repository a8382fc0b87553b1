#include "server/http/json_messages.h"

#include <limits>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "google/protobuf/descriptor.h"
#include "kernels/base/json_text.h"

namespace opmill::json {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The value of a field that is not repeated, or its element.
void AppendValue(const Message& message, const FieldDescriptor& field, int index,
                 std::string& json) {
  const Reflection& reflection = *message.GetReflection();
  const auto get = [&](auto repeated, auto single) {
    return index < 0 ? (reflection.*single)(message, &field)
                     : (reflection.*repeated)(message, &field, index);
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      absl::StrAppend(&json, get(&Reflection::GetRepeatedInt32, &Reflection::GetInt32));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      absl::StrAppend(&json, get(&Reflection::GetRepeatedInt64, &Reflection::GetInt64));
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      absl::StrAppend(&json, get(&Reflection::GetRepeatedUInt32, &Reflection::GetUInt32));
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      absl::StrAppend(&json, get(&Reflection::GetRepeatedUInt64, &Reflection::GetUInt64));
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      absl::StrAppend(&json,
                      get(&Reflection::GetRepeatedBool, &Reflection::GetBool) ? "true" : "false");
      break;
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = index < 0 ? reflection.GetEnumValue(message, &field)
                                   : reflection.GetRepeatedEnumValue(message, &field, index);
      const auto* const value = field.enum_type()->FindValueByNumber(number);
      AppendJsonString(json, value == nullptr ? absl::StrCat(number) : std::string(value->name()));
      break;
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string scratch;
      AppendJsonString(json, index < 0 ? reflection.GetStringReference(message, &field, &scratch)
                                       : reflection.GetRepeatedStringReference(message, &field,
                                                                               index, &scratch));
      break;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      AppendMessage(index < 0 ? reflection.GetMessage(message, &field)
                              : reflection.GetRepeatedMessage(message, &field, index),
                    json);
      break;
    default:  // the protocol has no floating-point fields in these messages
      json += "null";
  }
}

bool IsShown(const Message& message, const FieldDescriptor& field) {
  if (field.is_repeated()) return true;
  return (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE &&
          field.containing_oneof() == nullptr) ||
         message.GetReflection()->HasField(message, &field);
}

absl::Status ReadParameters(const std::string& path, element value, const FieldDescriptor& field,
                            Message& message) {
  const Reflection& reflection = *message.GetReflection();
  return ForEachField(
      path, value, [&](const std::string& each_path, absl::string_view name, element each) {
        Message& entry = *reflection.AddMessage(&message, &field);
        const Descriptor& type = *entry.GetDescriptor();
        entry.GetReflection()->SetString(&entry, type.map_key(), std::string(name));
        return ReadParameter(each_path, name, each,
                             *entry.GetReflection()->MutableMessage(&entry, type.map_value()));
      });
}

absl::Status ReadField(const std::string& path, element value, const FieldDescriptor& field,
                       Message& message) {
  const Reflection& reflection = *message.GetReflection();
  if (field.is_map()) return ReadParameters(path, value, field, message);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: {
      ASSIGN_OR_RETURN(const bool is_true, BoolFrom(path, value));
      reflection.SetBool(&message, &field, is_true);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      ASSIGN_OR_RETURN(const absl::string_view text, StringFrom(path, value));
      reflection.SetString(&message, &field, std::string(text));
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      ASSIGN_OR_RETURN(const int64_t number, IntegerFrom(path, value));
      if (number < 0) {
        return InvalidField(path, absl::StrCat(path, " (", number, ") is not at least 0."));
      }
      reflection.SetUInt64(&message, &field, static_cast<uint64_t>(number));
      return absl::OkStatus();
    }
    default:
      return InvalidField(path, absl::StrCat(path, " cannot be given as JSON."));
  }
}

}  // namespace

void AppendField(const Message& message, const FieldDescriptor& field, std::string& json) {
  const Reflection& reflection = *message.GetReflection();
  if (!field.is_repeated()) {
    AppendValue(message, field, -1, json);
    return;
  }
  json += field.is_map() ? '{' : '[';
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    if (i > 0) json += ',';
    if (!field.is_map()) {
      AppendValue(message, field, i, json);
      continue;
    }
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    const Descriptor& type = *entry.GetDescriptor();
    AppendValue(entry, *type.map_key(), -1, json);
    json += ':';
    AppendValue(entry, *type.map_value(), -1, json);
  }
  json += field.is_map() ? '}' : ']';
}

void AppendMessage(const Message& message, std::string& json) {
  const Descriptor& type = *message.GetDescriptor();
  json += '{';
  bool is_first = true;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (!IsShown(message, field)) continue;
    if (!is_first) json += ',';
    is_first = false;
    absl::StrAppend(&json, "\"", std::string(field.name()), "\":");
    AppendField(message, field, json);
  }
  json += '}';
}

absl::Status ReadMessage(element object, Message& message) {
  const Descriptor& type = *message.GetDescriptor();
  return ForEachField("", object,
                      [&](const std::string& path, absl::string_view name, element value) {
                        const auto* const field = type.FindFieldByName(std::string(name));
                        if (field != nullptr) return ReadField(path, value, *field, message);
                        std::vector<std::string> names;
                        for (int i = 0; i < type.field_count(); ++i) {
                          names.emplace_back(type.field(i)->name());
                        }
                        return UnknownField(path, names);
                      });
}

absl::Status ReadParameter(const std::string& path, absl::string_view name, element value,
                           Message& parameter) {
  const Reflection& reflection = *parameter.GetReflection();
  const auto field = [&](const char* choice) {
    return parameter.GetDescriptor()->FindFieldByName(choice);
  };
  std::string_view text;
  int64_t integer = 0;
  uint64_t unsigned_integer = 0;
  double number = 0;
  bool is_true = false;
  if (value.get(text) == simdjson::SUCCESS) {
    const auto* const bytes = field("bytes_param");  // of files, which JSON has in base64
    if (bytes == nullptr || !absl::StartsWith(name, "file:")) {
      reflection.SetString(&parameter, field("string_param"), std::string(text));
      return absl::OkStatus();
    }
    std::string decoded;
    if (!absl::Base64Unescape(absl::string_view(text.data(), text.size()), &decoded)) {
      return InvalidField(path, absl::StrCat(path, " is not base64."));
    }
    reflection.SetString(&parameter, bytes, std::move(decoded));
  } else if (value.get(is_true) == simdjson::SUCCESS) {
    reflection.SetBool(&parameter, field("bool_param"), is_true);
  } else if (value.get(integer) == simdjson::SUCCESS) {
    reflection.SetInt64(&parameter, field("int64_param"), integer);
  } else if (field("uint64_param") != nullptr && value.get(unsigned_integer) == simdjson::SUCCESS) {
    reflection.SetUInt64(&parameter, field("uint64_param"), unsigned_integer);
  } else if (field("double_param") != nullptr && value.get(number) == simdjson::SUCCESS) {
    reflection.SetDouble(&parameter, field("double_param"), number);
  } else {
    return Mismatch(path, value, "a string, a number, true or false");
  }
  return absl::OkStatus();
}

}  // namespace opmill::json
