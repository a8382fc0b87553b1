#include "kernels/descriptor/attribute_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace opmill {
namespace {

void AppendNumber(std::string& text, uint32_t number) { absl::StrAppend(&text, number); }
void AppendNumber(std::string& text, int32_t number) { absl::StrAppend(&text, number); }
void AppendNumber(std::string& text, int64_t number) { absl::StrAppend(&text, number); }
void AppendNumber(std::string& text, uint64_t number) { absl::StrAppend(&text, number); }

// The shortest text that is read back as the same number.
template <typename Float>
requires std::is_floating_point_v<Float>
void AppendNumber(std::string& text, Float number) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), number).ptr;
  text.append(buffer, end);
}

void AppendNumber(std::string& text, const Scalar& scalar) {
  std::visit([&](auto number) { AppendNumber(text, number); }, scalar);
}

template <typename T>
void AppendNumber(std::string& text, const std::vector<T>& numbers) {
  text.push_back('[');
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) text.push_back(',');
    AppendNumber(text, numbers[i]);
  }
  text.push_back(']');
}

absl::Status NoNumber(absl::string_view what) { return absl::InvalidArgumentError(what); }

template <typename T>
absl::StatusOr<T> ParseNumber(absl::string_view text) {
  T number = {};
  if constexpr (std::is_floating_point_v<T>) {
    double wide = 0;
    if (absl::SimpleAtod(text, &wide)) {
      number = static_cast<T>(wide);
      if (!std::isnan(number) && std::isinf(number) == std::isinf(wide)) return number;
    }
    return NoNumber("is not a FLOAT32 number such as 0.25");
  } else if constexpr (std::is_signed_v<T>) {
    if (absl::SimpleAtoi(text, &number)) return number;
    return NoNumber("is not an integer from -2147483648 to 2147483647");
  } else {
    if (absl::SimpleAtoi(text, &number)) return number;
    return NoNumber("is not an integer from 0 to 4294967295");
  }
}

absl::StatusOr<Scalar> ParseScalar(absl::string_view text) {
  int64_t integer = 0;
  uint64_t unsigned_integer = 0;
  double real = 0;
  if (absl::SimpleAtoi(text, &integer)) return Scalar(integer);
  if (absl::SimpleAtoi(text, &unsigned_integer)) return Scalar(unsigned_integer);
  if (absl::SimpleAtod(text, &real) && !std::isnan(real)) return Scalar(real);
  return NoNumber("is not a number");
}

template <typename T>
absl::StatusOr<AttributeValue> ParseList(absl::string_view text) {
  std::vector<T> numbers;
  const absl::string_view listed = absl::StripAsciiWhitespace(text);
  if (listed.empty() || listed == "[]") return AttributeValue(numbers);
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    absl::StatusOr<T> number = ParseNumber<T>(part);
    if (!number.ok()) {
      return NoNumber(std::is_floating_point_v<T> ? "is not a list of numbers such as 0.5,2"
                                                  : "is not a list of integers such as 0,2");
    }
    numbers.push_back(*number);
  }
  return AttributeValue(std::move(numbers));
}

absl::StatusOr<AttributeValue> ParseChoice(const AttributeSchema& attribute,
                                           absl::string_view text) {
  const std::string wanted = absl::AsciiStrToUpper(text);
  const auto found = std::find(attribute.choices.begin(), attribute.choices.end(), wanted);
  if (found != attribute.choices.end()) {
    return AttributeValue(static_cast<uint32_t>(found - attribute.choices.begin()));
  }
  return NoNumber(
      absl::StrCat("is none of ", absl::AsciiStrToLower(absl::StrJoin(attribute.choices, ", "))));
}

template <typename T>
absl::StatusOr<AttributeValue> As(absl::StatusOr<T> number) {
  if (!number.ok()) return number.status();
  return AttributeValue(*number);
}

}  // namespace

void AppendAttribute(const AttributeSchema& attribute, const AttributeValue& value,
                     std::string& text) {
  if (attribute.kind == AttributeKind::kChoice) {
    absl::StrAppend(&text, ChoiceName(attribute, std::get<uint32_t>(value)));
    return;
  }
  std::visit([&](const auto& held) { AppendNumber(text, held); }, value);
}

absl::StatusOr<AttributeValue> ParseAttribute(const AttributeSchema& attribute,
                                              absl::string_view text) {
  switch (attribute.kind) {
    case AttributeKind::kChoice:
      return ParseChoice(attribute, text);
    case AttributeKind::kFlag: {
      bool flag = false;
      if (absl::SimpleAtob(text, &flag)) return AttributeValue(flag ? 1u : 0u);
      return NoNumber("is neither true nor false");
    }
    case AttributeKind::kNumber:
    case AttributeKind::kAxis:
      return As(ParseNumber<uint32_t>(text));
    case AttributeKind::kSigned:
      return As(ParseNumber<int32_t>(text));
    case AttributeKind::kFloat:
      return As(ParseNumber<float>(text));
    case AttributeKind::kScalar:
      return As(ParseScalar(text));
    case AttributeKind::kAxes:
    case AttributeKind::kNumbers:
      return ParseList<uint32_t>(text);
    case AttributeKind::kSignedNumbers:
      return ParseList<int32_t>(text);
    case AttributeKind::kFloatNumbers:
      break;
  }
  return ParseList<float>(text);
}

absl::StatusOr<AttributeValue> DefaultOf(const AttributeSchema& attribute) {
  if (!attribute.default_text.empty()) return ParseAttribute(attribute, attribute.default_text);
  if (attribute.kind == AttributeKind::kFlag) return AttributeValue(0u);
  return absl::InvalidArgumentError("is not given");
}

AttributeValue ExampleOf(const AttributeSchema& attribute) {
  if (attribute.kind == AttributeKind::kAxes) return std::vector<uint32_t>{0};
  if (attribute.kind == AttributeKind::kAxis) return 0u;
  const absl::StatusOr<AttributeValue> value = DefaultOf(attribute);
  return value.ok() ? *value : ParseAttribute(attribute, "1").value_or(AttributeValue(1u));
}

}  // namespace opmill
