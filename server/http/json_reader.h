// JSON of callers, with errors that name the field.
#ifndef OPMILL_SERVER_HTTP_JSON_READER_H_
#define OPMILL_SERVER_HTTP_JSON_READER_H_

#include <simdjson.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"

namespace opmill::json {

using simdjson::dom::element;

// The memory that Document takes for each byte of JSON, at most: indices and values for text of one
// character each.
inline constexpr uint64_t kMemoryPerByte = 16;

// Parsed JSON: valid in all of its parts, strings included. Values of Parse live as long as it.
class Document {
 public:
  // A copy of `size` bytes of JSON, with the room behind them that the parser reads.
  explicit Document(size_t size) : text_(size + simdjson::SIMDJSON_PADDING, '\0'), size_(size) {}

  char* text() { return text_.data(); }
  size_t size() const { return size_; }
  absl::StatusOr<element> Parse();

 private:
  std::string text_;
  size_t size_;
  simdjson::dom::parser parser_;
};

// "path is a list; it must be a string."
absl::Status Mismatch(const std::string& path, element value, absl::string_view must_be);
absl::Status UnknownField(const std::string& path, const std::vector<std::string>& known);

absl::StatusOr<absl::string_view> StringFrom(const std::string& path, element value);
absl::StatusOr<int64_t> IntegerFrom(const std::string& path, element value);
absl::StatusOr<bool> BoolFrom(const std::string& path, element value);

// "a" and "b" are "a.b"; "" and "b" are "b".
std::string FieldPath(const std::string& path, absl::string_view name);

// Calls visit(path of the field, name, value), which returns a Status, until that is an error. A
// name that comes twice is one: parsers do not agree on which counts.
template <typename Visit>
absl::Status ForEachField(const std::string& path, element value, const Visit& visit) {
  simdjson::dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return Mismatch(path, value, "an object");
  absl::flat_hash_set<absl::string_view> names;
  for (const auto [key, field] : object) {
    const absl::string_view name(key.data(), key.size());
    std::string field_path = FieldPath(path, Excerpt(name));
    if (!names.insert(name).second) {
      return InvalidField(field_path, absl::StrCat(field_path, " is given twice."));
    }
    RETURN_IF_ERROR(visit(field_path, name, field));
  }
  return absl::OkStatus();
}

// Calls visit(path of the element, element) in the same way.
template <typename Visit>
absl::Status ForEachElement(const std::string& path, element value, const Visit& visit) {
  simdjson::dom::array array;
  if (value.get(array) != simdjson::SUCCESS) return Mismatch(path, value, "a list");
  size_t index = 0;
  for (const element each : array) {
    RETURN_IF_ERROR(visit(absl::StrCat(path, "[", index++, "]"), each));
  }
  return absl::OkStatus();
}

}  // namespace opmill::json

#endif  // OPMILL_SERVER_HTTP_JSON_READER_H_
