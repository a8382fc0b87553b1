#ifndef OPMILL_TESTS_FUZZ_FIELD_PATH_H_
#define OPMILL_TESTS_FUZZ_FIELD_PATH_H_

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace opmill {

// True if a path like "operator.reduce.axes[1]" names a field or a oneof of this message type.
inline bool NamesField(absl::string_view path, const google::protobuf::Descriptor* type) {
  for (const absl::string_view part : absl::StrSplit(path, '.')) {
    if (type == nullptr) return false;
    const std::vector<std::string> name = absl::StrSplit(part, absl::MaxSplits('[', 1));
    const google::protobuf::FieldDescriptor* field = type->FindFieldByName(name[0]);
    if (field == nullptr) return type->FindOneofByName(name[0]) != nullptr;
    if (name.size() == 2 && !field->is_repeated()) return false;
    type = field->message_type();
  }
  return true;
}

}  // namespace opmill

#endif  // OPMILL_TESTS_FUZZ_FIELD_PATH_H_
