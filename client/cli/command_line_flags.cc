#include "client/cli/command_line_flags.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace opmill {

std::string FlagReader::Required(const std::string& flag) {
  const std::optional<std::string> text = line_.Get(flag);
  if (!text || text->empty()) Fail(flag, "A value is required.");
  return text.value_or("");
}

uint32_t FlagReader::RequiredNumber(const std::string& flag) {
  Required(flag);
  return Number(flag, 0);
}

uint32_t FlagReader::Number(const std::string& flag, uint32_t absent) {
  const std::optional<std::string> text = line_.Get(flag);
  uint32_t value = absent;
  if (text && !absl::SimpleAtoi(*text, &value)) {
    Fail(flag, absl::StrCat("\"", *text, "\" is not a number from 0 to 4294967295."));
  }
  return value;
}

template <typename Integer>
std::vector<Integer> FlagReader::RequiredList(const std::string& flag, absl::string_view expected) {
  std::vector<Integer> values;
  for (const absl::string_view part : absl::StrSplit(Required(flag), ',')) {
    if (!absl::SimpleAtoi(part, &values.emplace_back())) {
      Fail(flag, absl::StrCat("\"", part, "\" is not ", expected, "."));
    }
  }
  return values;
}

std::vector<int64_t> FlagReader::RequiredIntegers(const std::string& flag) {
  return RequiredList<int64_t>(flag, "an integer; separate several with commas: 0,1");
}

std::vector<uint32_t> FlagReader::RequiredSizes(const std::string& flag) {
  return RequiredList<uint32_t>(flag, "a size; separate several with commas: 1024,1024");
}

absl::Duration FlagReader::Time(const std::string& flag, absl::Duration absent) {
  const std::optional<std::string> text = line_.Get(flag);
  absl::Duration value = absent;
  if (!text) return value;
  if (!absl::ParseDuration(*text, &value)) {
    double number = 0;
    Fail(flag, absl::StrCat("\"", *text, "\" is not a duration; write it as 5s, 250ms or 2m.",
                            absl::SimpleAtod(*text, &number) && number > 0
                                ? absl::StrCat(" Did you mean ", *text, "s?")
                                : ""));
  } else if (value <= absl::ZeroDuration()) {
    Fail(flag, absl::StrCat(*text, " is not above 0."));
  }
  return value;
}

void FlagReader::Fail(absl::string_view flag, absl::string_view sentence) {
  FailPlain(absl::StrCat("--", flag, ": ", sentence));
}

void FlagReader::FailPlain(absl::string_view sentence) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(sentence);
}

}  // namespace opmill
