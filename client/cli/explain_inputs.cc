#include "client/cli/explain_inputs.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/model_call.h"
#include "client/names.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/nearest.h"

namespace opmill {
namespace {

constexpr int64_t kAnySize = -1;

struct Given {
  std::vector<int64_t> numbers;
  bool are_elements = false;
};

absl::Status Refusal(absl::string_view sentence) {
  return absl::InvalidArgumentError(absl::StrCat("--input: ", sentence));
}

absl::StatusOr<std::pair<std::string, Given>> ParseWord(const std::string& word) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(word, absl::MaxSplits('=', 1));
  Given given;
  absl::string_view name = parts.first;
  given.are_elements = absl::ConsumeSuffix(&name, ":");
  bool is_valid = !name.empty();
  for (const absl::string_view part : absl::StrSplit(parts.second, ',')) {
    is_valid = is_valid && absl::SimpleAtoi(part, &given.numbers.emplace_back());
  }
  if (is_valid && !given.numbers.empty())
    return std::make_pair(std::string(name), std::move(given));
  return Refusal(absl::StrCat("\"", Excerpt(word), "\" is not NAME=SIZES, such as x=1,3,320,320, ",
                              "or NAME:=INTEGERS, such as sr:=16000."));
}

template <typename T>
bool Append(int64_t number, std::string& bytes) {
  const auto element = static_cast<T>(number);
  if (static_cast<int64_t>(element) != number) return false;
  bytes.append(reinterpret_cast<const char*>(&element), sizeof element);
  return true;
}

// False if the type, which is one of integers, does not have the number.
bool Append(v1::DataType type, int64_t number, std::string& bytes) {
  switch (type) {
    case v1::DATA_TYPE_INT64:
      return Append<int64_t>(number, bytes);
    case v1::DATA_TYPE_INT32:
      return Append<int32_t>(number, bytes);
    case v1::DATA_TYPE_INT16:
      return Append<int16_t>(number, bytes);
    case v1::DATA_TYPE_INT8:
      return Append<int8_t>(number, bytes);
    case v1::DATA_TYPE_UINT64:
      return number >= 0 && Append<uint64_t>(number, bytes);
    case v1::DATA_TYPE_UINT32:
      return Append<uint32_t>(number, bytes);
    case v1::DATA_TYPE_UINT16:
      return Append<uint16_t>(number, bytes);
    default:
      return Append<uint8_t>(number, bytes);
  }
}

absl::Status SetElements(const v1::ModelTensor& expected, const Given& given, v1::ModelInput& to) {
  std::vector<int64_t> sizes(expected.sizes().begin(), expected.sizes().end());
  const auto count = static_cast<int64_t>(given.numbers.size());
  if (sizes.size() == 1 && sizes[0] == kAnySize) sizes[0] = count;
  int64_t takes = 1;
  for (const int64_t size : sizes) takes *= size;
  if (takes != count) {
    return Refusal(absl::StrCat(ToText(expected), " does not have ", count, " elements."));
  }
  for (const int64_t size : sizes) to.mutable_tensor()->add_sizes(static_cast<uint32_t>(size));
  for (const int64_t number : given.numbers) {
    if (Append(expected.data_type(), number, *to.mutable_value())) continue;
    return Refusal(absl::StrCat(number, " is not a number of ", TypeName(expected),
                                ", the type of ", Excerpt(expected.name()), "."));
  }
  return absl::OkStatus();
}

absl::Status SetSizes(const v1::ModelTensor& expected, const Given& given, v1::ModelInput& to) {
  const bool fits = absl::c_equal(expected.sizes(), given.numbers, [](int64_t takes, int64_t size) {
    return (takes == kAnySize && size > 0 && size <= std::numeric_limits<uint32_t>::max()) ||
           takes == size;
  });
  if (!fits) {
    return Refusal(absl::StrCat("[", absl::StrJoin(given.numbers, ","), "] are no sizes of ",
                                ToText(expected), "."));
  }
  for (const int64_t size : given.numbers) {
    to.mutable_tensor()->add_sizes(static_cast<uint32_t>(size));
  }
  return absl::OkStatus();
}

// What the model fixes; nullopt if it does not.
std::optional<Given> FixedSizes(const v1::ModelTensor& input) {
  if (input.needs_value() || absl::c_linear_search(input.sizes(), kAnySize)) return std::nullopt;
  return Given{{input.sizes().begin(), input.sizes().end()}};
}

// "--input x=?,3 --input sr:=INTEGER"
std::string Wanted(const v1::ModelTensor& input) {
  if (input.needs_value()) {
    const bool is_one = input.sizes().empty();
    return absl::StrCat("--input ", Excerpt(input.name()), is_one ? ":=INTEGER" : ":=INTEGERS");
  }
  const auto append = [](std::string* text, int64_t size) {
    absl::StrAppend(text, size == kAnySize ? "?" : absl::StrCat(size));
  };
  return absl::StrCat("--input ", Excerpt(input.name()), "=",
                      absl::StrJoin(input.sizes(), ",", append));
}

absl::Status CheckNames(const v1::ModelInfo& model, const std::map<std::string, Given>& given) {
  std::vector<std::string> names;
  for (const v1::ModelTensor& input : model.inputs()) names.push_back(input.name());
  for (const auto& entry : given) {
    if (absl::c_linear_search(names, entry.first)) continue;
    return Refusal(absl::StrCat("\"", Excerpt(entry.first), "\" is no input: ", model.name(),
                                " takes ", absl::StrJoin(names, ", "), ".",
                                DidYouMean(entry.first, names)));
  }
  return absl::OkStatus();
}

absl::Status AddInput(const v1::ModelTensor& expected, const Given& given, v1::ModelInput& to) {
  to.set_name(expected.name());
  to.mutable_tensor()->set_data_type(expected.data_type());
  if (given.are_elements == expected.needs_value()) {
    return expected.needs_value() ? SetElements(expected, given, to)
                                  : SetSizes(expected, given, to);
  }
  return Refusal(absl::StrCat(Excerpt(expected.name()),
                              expected.needs_value()
                                  ? " takes elements, because sizes depend on them: "
                                  : " takes sizes, because the server makes its elements up: ",
                              Wanted(expected), "."));
}

}  // namespace

absl::Status AddInputs(const v1::ModelInfo& model, const std::vector<std::string>& words,
                       v1::ModelDesc& to) {
  std::map<std::string, Given> given;
  for (const std::string& word : words) {
    ASSIGN_OR_RETURN(auto input, ParseWord(word));
    if (given.insert(input).second) continue;
    return Refusal(absl::StrCat("The input ", Excerpt(input.first), " is given twice."));
  }
  RETURN_IF_ERROR(CheckNames(model, given));
  std::vector<std::string> missing;
  for (const v1::ModelTensor& expected : model.inputs()) {
    const auto found = given.find(expected.name());
    const std::optional<Given> input =
        found != given.end() ? std::optional(found->second) : FixedSizes(expected);
    if (!input.has_value()) {
      missing.push_back(Wanted(expected));
      continue;
    }
    RETURN_IF_ERROR(AddInput(expected, *input, *to.add_inputs()));
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      model.name(), " leaves this open, so give it: ", absl::StrJoin(missing, " "), "."));
}

}  // namespace opmill
