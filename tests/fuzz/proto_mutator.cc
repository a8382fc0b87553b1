#include "tests/fuzz/proto_mutator.h"

#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"

namespace opmill {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class Silence : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

constexpr int kMaxRepeated = 64;
constexpr size_t kMaxBytes = 256;

void Collect(Message& message, std::vector<Message*>& all) {
  all.push_back(&message);
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      Collect(*reflection.MutableMessage(&message, field), all);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      Collect(*reflection.MutableRepeatedMessage(&message, field, i), all);
    }
  }
}

// Boundary values, more often than others.
uint64_t MutateNumber(uint64_t old, Random& random) {
  switch (random.Below(7)) {
    case 0:
      return old + 1;
    case 1:
      return old - 1;
    case 2:
      return random.Below(10);
    case 3:
      return (uint64_t{1} << random.Below(64)) + random.Below(3) - 1;
    case 4:
      return old * (1 + random.Below(4));
    case 5:
      return old ^ (uint64_t{1} << random.Below(33));
    default:
      return random.Bits() >> random.Below(64);
  }
}

int MutateEnum(const EnumDescriptor& type, Random& random) {
  if (random.OneIn(20)) return static_cast<int>(random.Bits());
  return type.value(static_cast<int>(random.Below(type.value_count())))->number();
}

std::string MutateBytes(std::string bytes, Random& random) {
  const size_t at = bytes.empty() ? 0 : random.Below(bytes.size());
  switch (random.Below(bytes.empty() ? 2 : 5)) {
    case 0:
      bytes.insert(at, random.Below(40), static_cast<char>(random.Bits()));
      break;
    case 1:
      bytes.insert(at, 1, static_cast<char>(random.Bits()));
      break;
    case 2:
      bytes[at] = static_cast<char>(random.Bits());
      break;
    case 3:
      bytes.erase(at, 1 + random.Below(8));
      break;
    default:
      bytes[at] ^= static_cast<char>(1 << random.Below(8));
      break;
  }
  bytes.resize(std::min(bytes.size(), kMaxBytes));
  return bytes;
}

// One value of a field: singular, or the `index`-th.
class Value {
 public:
  Value(Message& message, const FieldDescriptor& field, int index)
      : message_(message), reflection_(*message.GetReflection()), field_(field), index_(index) {}

  void Change(Random& random) {
    switch (field_.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return Set(&Reflection::SetInt32, &Reflection::SetRepeatedInt32,
                   static_cast<int32_t>(MutateNumber(random.Bits(), random)));
      case FieldDescriptor::CPPTYPE_INT64:
        return Set(&Reflection::SetInt64, &Reflection::SetRepeatedInt64,
                   static_cast<int64_t>(MutateNumber(random.Bits(), random)));
      case FieldDescriptor::CPPTYPE_UINT32:
        return Set(&Reflection::SetUInt32, &Reflection::SetRepeatedUInt32,
                   static_cast<uint32_t>(MutateNumber(
                       Get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32), random)));
      case FieldDescriptor::CPPTYPE_UINT64:
        return Set(
            &Reflection::SetUInt64, &Reflection::SetRepeatedUInt64,
            MutateNumber(Get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64), random));
      case FieldDescriptor::CPPTYPE_BOOL:
        return Set(&Reflection::SetBool, &Reflection::SetRepeatedBool, random.OneIn(2));
      case FieldDescriptor::CPPTYPE_ENUM:
        return Set(&Reflection::SetEnumValue, &Reflection::SetRepeatedEnumValue,
                   MutateEnum(*field_.enum_type(), random));
      case FieldDescriptor::CPPTYPE_STRING:
        return Set(
            &Reflection::SetString, &Reflection::SetRepeatedString,
            MutateBytes(Get(&Reflection::GetString, &Reflection::GetRepeatedString), random));
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Mutate(field_.is_repeated()
                          ? *reflection_.MutableRepeatedMessage(&message_, &field_, index_)
                          : *reflection_.MutableMessage(&message_, &field_),
                      random);
      default:
        return;
    }
  }

 private:
  template <typename T>
  T Get(T (Reflection::*one)(const Message&, const FieldDescriptor*) const,
        T (Reflection::*repeated)(const Message&, const FieldDescriptor*, int) const) const {
    return field_.is_repeated() ? (reflection_.*repeated)(message_, &field_, index_)
                                : (reflection_.*one)(message_, &field_);
  }

  template <typename T>
  void Set(void (Reflection::*one)(Message*, const FieldDescriptor*, T) const,
           void (Reflection::*repeated)(Message*, const FieldDescriptor*, int, T) const, T value) {
    if (field_.is_repeated()) {
      (reflection_.*repeated)(&message_, &field_, index_, std::move(value));
    } else {
      (reflection_.*one)(&message_, &field_, std::move(value));
    }
  }

  Message& message_;
  const Reflection& reflection_;
  const FieldDescriptor& field_;
  const int index_;
};

void AddElement(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      reflection.AddMessage(&message, &field);
      return;
    case FieldDescriptor::CPPTYPE_UINT32:
      reflection.AddUInt32(&message, &field, 1);
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      reflection.AddString(&message, &field, "");
      return;
    default:  // no other types are repeated here
      return;
  }
}

void MutateRepeated(Message& message, const FieldDescriptor& field, Random& random) {
  const Reflection& reflection = *message.GetReflection();
  const int size = reflection.FieldSize(message, &field);
  const uint64_t choice = random.Below(6);
  if (size == 0 || (choice == 0 && size < kMaxRepeated)) {
    AddElement(message, field);
    const int added = reflection.FieldSize(message, &field) - 1;
    if (added < 0) return;
    if (size > 0 && field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      reflection.MutableRepeatedMessage(&message, &field, added)
          ->CopyFrom(
              reflection.GetRepeatedMessage(message, &field, static_cast<int>(random.Below(size))));
    }
    Value(message, field, added).Change(random);
    // To any position.
    for (int to = static_cast<int>(random.Below(added + 1)), i = added; i > to; --i) {
      reflection.SwapElements(&message, &field, i, i - 1);
    }
    return;
  }
  const int index = static_cast<int>(random.Below(size));
  if (choice == 1) {
    for (int i = index; i + 1 < size; ++i) reflection.SwapElements(&message, &field, i, i + 1);
    reflection.RemoveLast(&message, &field);
  } else if (choice == 2) {
    reflection.SwapElements(&message, &field, index, static_cast<int>(random.Below(size)));
  } else {
    Value(message, field, index).Change(random);
  }
}

}  // namespace

void Mutate(Message& message, Random& random) {
  std::vector<Message*> all;
  Collect(message, all);
  // A few attempts: not every message has a field, and not every field another value.
  for (int turn = 0; turn < 4; ++turn) {
    Message& chosen = *random.Pick(all);
    const Descriptor& type = *chosen.GetDescriptor();
    if (type.field_count() == 0) continue;
    const FieldDescriptor& field = *type.field(static_cast<int>(random.Below(type.field_count())));
    if (field.is_repeated()) {
      MutateRepeated(chosen, field, random);
    } else if (random.OneIn(8)) {
      chosen.GetReflection()->ClearField(&chosen, &field);
    } else {
      Value(chosen, field, 0).Change(random);
    }
    return;
  }
}

void CrossOver(Message& message, const Message& donor, Random& random) {
  std::vector<Message*> targets;
  std::vector<Message*> sources;
  Collect(message, targets);
  Collect(const_cast<Message&>(donor), sources);  // it is not modified
  Message& target = *random.Pick(targets);
  std::vector<Message*> fitting;
  for (Message* source : sources) {
    if (source->GetDescriptor() == target.GetDescriptor()) fitting.push_back(source);
  }
  if (fitting.empty()) return;
  if (random.OneIn(2)) {
    target.MergeFrom(*random.Pick(fitting));
  } else {
    target.CopyFrom(*random.Pick(fitting));
  }
}

bool ParseText(const uint8_t* data, size_t size, Message& message) {
  Silence silence;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silence);
  parser.SetRecursionLimit(20);
  google::protobuf::io::ArrayInputStream stream(data, static_cast<int>(size));
  return parser.Parse(&stream, &message);
}

namespace {

size_t PrintText(const Message& message, uint8_t* out, size_t max_size, size_t otherwise) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  if (text.size() > max_size) return otherwise;
  std::memcpy(out, text.data(), text.size());
  return text.size();
}

}  // namespace

size_t MutateText(uint8_t* data, size_t size, size_t max_size, uint32_t seed, Message& message) {
  Random random(seed);
  if (!ParseText(data, size, message)) message.Clear();
  for (uint64_t turns = 1 + random.Below(4); turns > 0; --turns) Mutate(message, random);
  return PrintText(message, data, max_size, size);
}

size_t CrossOverText(const uint8_t* first, size_t first_size, const uint8_t* second,
                     size_t second_size, uint8_t* out, size_t max_out_size, uint32_t seed,
                     Message& message, Message& donor) {
  Random random(seed);
  if (!ParseText(first, first_size, message) || !ParseText(second, second_size, donor)) return 0;
  CrossOver(message, donor, random);
  return PrintText(message, out, max_out_size, 0);
}

}  // namespace opmill
