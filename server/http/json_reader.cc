#include "server/http/json_reader.h"

#include "absl/strings/str_join.h"

namespace opmill::json {
namespace {

absl::string_view KindOf(element value) {
  switch (value.type()) {
    case simdjson::dom::element_type::ARRAY:
      return "a list";
    case simdjson::dom::element_type::OBJECT:
      return "an object";
    case simdjson::dom::element_type::STRING:
      return "a string";
    case simdjson::dom::element_type::BOOL:
      return "a boolean";
    case simdjson::dom::element_type::NULL_VALUE:
      return "null";
    default:
      return "a number";
  }
}

absl::Status NotJson(simdjson::error_code code) {
  switch (code) {
    case simdjson::DEPTH_ERROR:
      return absl::InvalidArgumentError("The JSON of the request has too many nested lists.");
    case simdjson::UTF8_ERROR:
      return absl::InvalidArgumentError("The JSON of the request is not UTF-8.");
    case simdjson::NUMBER_ERROR:
      return absl::InvalidArgumentError(
          "The JSON of the request has a number that is malformed or out of the range of a "
          "double.");
    case simdjson::MEMALLOC:
      return absl::ResourceExhaustedError("The server has no memory for the JSON of the request.");
    case simdjson::EMPTY:
      return absl::InvalidArgumentError("The request has no JSON.");
    default:
      return absl::InvalidArgumentError("The JSON of the request is malformed.");
  }
}

}  // namespace

absl::StatusOr<element> Document::Parse() {
  element root;
  constexpr bool kCopies = false;  // the text, to add padding
  if (const auto code = parser_.parse(text_.data(), size_, kCopies).get(root);
      code != simdjson::SUCCESS) {
    return NotJson(code);
  }
  if (!root.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("The JSON of the request is ", KindOf(root), "; it must be an object."));
  }
  return root;
}

absl::Status Mismatch(const std::string& path, element value, absl::string_view must_be) {
  return InvalidField(path,
                      absl::StrCat(path, " is ", KindOf(value), "; it must be ", must_be, "."));
}

absl::Status UnknownField(const std::string& path, const std::vector<std::string>& known) {
  return InvalidField(path, absl::StrCat(path, " is not a field of the request; those here are ",
                                         absl::StrJoin(known, ", "), "."));
}

absl::StatusOr<absl::string_view> StringFrom(const std::string& path, element value) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return Mismatch(path, value, "a string");
  return absl::string_view(text.data(), text.size());
}

absl::StatusOr<int64_t> IntegerFrom(const std::string& path, element value) {
  int64_t number = 0;
  if (value.get(number) != simdjson::SUCCESS) return Mismatch(path, value, "an integer");
  return number;
}

absl::StatusOr<bool> BoolFrom(const std::string& path, element value) {
  bool is_true = false;
  if (value.get(is_true) != simdjson::SUCCESS) return Mismatch(path, value, "true or false");
  return is_true;
}

std::string FieldPath(const std::string& path, absl::string_view name) {
  return path.empty() ? std::string(name) : absl::StrCat(path, ".", name);
}

}  // namespace opmill::json
