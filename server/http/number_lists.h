// Reads long lists of numbers in JSON without a tree of them.
#ifndef OPMILL_SERVER_HTTP_NUMBER_LISTS_H_
#define OPMILL_SERVER_HTTP_NUMBER_LISTS_H_

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace opmill::json {

inline bool IsBlank(char c) {
  return c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t');
}

// Lists that have been taken out of JSON, each of which a string in the rest stands for. What looks
// like a list of numbers is taken; whether it is one shows when its numbers are read. If not all
// lists are found and read, the rest means nothing, and the text has to be parsed as a whole.
class NumberLists {
 public:
  // The rest of the text, which must outlive the lists. Means nothing if no list was taken.
  std::string TakeFrom(absl::string_view text);
  bool empty() const { return lists_.empty(); }

  // The text between the brackets of the list that a string of the rest stands for; nullopt if it
  // stands for none. To be called once for each.
  std::optional<absl::string_view> Find(absl::string_view placeholder);
  bool all_found() const { return found_ == lists_.size(); }

 private:
  std::vector<absl::string_view> lists_;
  size_t found_ = 0;
};

// A number in a list, with the values that simdjson's element has.
class Number {
 public:
  // Reads the number that begins at `at`, and returns what is behind it. Null if there is none in
  // JSON's form, or none that is read here: one that a double does not hold, or an integer with 20
  // digits.
  const char* Read(const char* at, const char* end);

  simdjson::error_code get(double& to) const {
    to = value_;
    return simdjson::SUCCESS;
  }
  simdjson::error_code get(int64_t& to) const;
  simdjson::error_code get(uint64_t& to) const;
  simdjson::error_code get(bool&) const { return simdjson::INCORRECT_TYPE; }

 private:
  bool is_integer_ = true;
  bool is_negative_ = false;
  uint64_t magnitude_ = 0;  // of an integer
  double value_ = 0;
};

}  // namespace opmill::json

#endif  // OPMILL_SERVER_HTTP_NUMBER_LISTS_H_
