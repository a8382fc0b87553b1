#include "tests/bench/tool.h"

#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/base/errors.h"
#include "kernels/base/json_text.h"

namespace opmill {

absl::StatusOr<Command> Command::Parse(absl::string_view line) {
  Command command;
  for (absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (command.verb_.empty()) {
      command.verb_ = parts.first;
    } else if (!command.words_.insert(parts).second) {
      return absl::InvalidArgumentError(absl::StrCat(parts.first, " is given twice."));
    }
  }
  return command;
}

std::string Command::Text(const std::string& name) const {
  const auto found = words_.find(name);
  return found == words_.end() ? "" : found->second;
}

absl::StatusOr<uint64_t> Command::Number(const std::string& name) const {
  const std::string text = Text(name);
  uint64_t value = 0;
  if (text.empty() || absl::SimpleAtoi(text, &value)) return value;
  return absl::InvalidArgumentError(absl::StrCat(name, " is no number: ", text));
}

absl::StatusOr<std::vector<uint32_t>> Command::Numbers(const std::string& name) const {
  return ParseNumbers(Text(name));
}

absl::StatusOr<std::vector<uint32_t>> ParseNumbers(absl::string_view text) {
  std::vector<uint32_t> numbers;
  for (absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    uint32_t value = 0;
    if (!absl::SimpleAtoi(word, &value)) {
      return absl::InvalidArgumentError(absl::StrCat("These are no numbers: ", text));
    }
    numbers.push_back(value);
  }
  return numbers;
}

std::string& Json::Name(absl::string_view name) {
  absl::StrAppend(&fields_, fields_.empty() ? "" : ", ", "\"", name, "\": ");
  return fields_;
}

Json& Json::Add(absl::string_view name, double value) {
  absl::StrAppendFormat(&Name(name), "%.9g", value);
  return *this;
}

Json& Json::Add(absl::string_view name, absl::string_view value) {
  absl::StrAppend(&Name(name), JsonString(value));
  return *this;
}

Json& Json::Add(absl::string_view name, const std::vector<double>& values) {
  const auto number = [](std::string* out, double value) {
    absl::StrAppendFormat(out, "%.9g", value);
  };
  absl::StrAppend(&Name(name), "[", absl::StrJoin(values, ", ", number), "]");
  return *this;
}

void ServeCommands(const std::function<absl::StatusOr<Json>(const Command&)>& handle) {
  const auto answer = [&](const std::string& line) -> absl::StatusOr<Json> {
    ASSIGN_OR_RETURN(const Command command, Command::Parse(line));
    return handle(command);
  };
  std::string line;
  while (std::getline(std::cin, line)) {
    absl::StatusOr<Json> json = answer(line);
    if (!json.ok()) json = Json().Add("error", json.status().ToString());
    std::cout << json->Text() << std::endl;
  }
}

}  // namespace opmill
