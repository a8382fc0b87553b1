#include "client/array_text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/names.h"
#include "client/number_text.h"
#include "kernels/base/half.h"

namespace opmill {
namespace {

constexpr size_t kLineWidth = 75;
constexpr int kPrecision = 8;
// More than the shortest decimal of any number above 0.0001 needs.
constexpr int kMaxFractionDigits = 20;

template <typename T>
T Load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

std::string IntegerText(v1::DataType type, const std::byte* element) {
  switch (type) {
    case v1::DATA_TYPE_INT8:
      return absl::StrCat(int{Load<int8_t>(element)});
    case v1::DATA_TYPE_INT16:
      return absl::StrCat(Load<int16_t>(element));
    case v1::DATA_TYPE_INT32:
      return absl::StrCat(Load<int32_t>(element));
    case v1::DATA_TYPE_INT64:
      return absl::StrCat(Load<int64_t>(element));
    case v1::DATA_TYPE_UINT8:
      return absl::StrCat(int{Load<uint8_t>(element)});
    case v1::DATA_TYPE_UINT16:
      return absl::StrCat(Load<uint16_t>(element));
    case v1::DATA_TYPE_UINT32:
      return absl::StrCat(Load<uint32_t>(element));
    case v1::DATA_TYPE_UINT64:
      return absl::StrCat(Load<uint64_t>(element));
    default:
      return "?";
  }
}

std::optional<FloatFormat> FormatOf(v1::DataType type) {
  if (type == v1::DATA_TYPE_FLOAT32) return FloatFormat::kFloat32;
  if (type == v1::DATA_TYPE_FLOAT16) return FloatFormat::kFloat16;
  return std::nullopt;
}

float FloatAt(FloatFormat format, const std::byte* element) {
  return format == FloatFormat::kFloat32 ? Load<float>(element)
                                         : HalfToFloat(Load<uint16_t>(element));
}

std::string NonFiniteText(float value) {
  if (std::isnan(value)) return "nan";
  return value < 0 ? "-inf" : "inf";
}

std::string PadLeft(std::string text, size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

// NumPy's FloatingFormat: one format for all elements, chosen from the finite ones.
class FloatColumn {
 public:
  FloatColumn(FloatFormat format, const std::vector<float>& values) : format_(format) {
    float min = 0;
    float max = 0;
    for (const float value : values) {
      const float magnitude = std::fabs(value);
      if (!std::isfinite(value) || magnitude == 0) continue;
      min = min == 0 ? magnitude : std::min(min, magnitude);
      max = std::max(max, magnitude);
    }
    // Too large, too small or too different to align. NumPy divides in the array's type.
    is_scientific_ = max != 0 && (max >= 1e8 || min < 0.0001 || Quotient(max, min) > 1000);
    for (const float value : values) {
      if (std::isfinite(value)) Measure(value);
    }
    const size_t tail = (is_scientific_ ? exponent_digits_ + 2 : 0) + fraction_digits_ + 1;
    for (const float value : values) {
      if (std::isfinite(value)) continue;
      const size_t size = NonFiniteText(value).size();
      if (size > tail + whole_) whole_ = size - tail;
    }
    width_ = whole_ + (any_finite_ ? tail : 1);
  }

  std::string Text(float value) const {
    if (!std::isfinite(value)) return PadLeft(NonFiniteText(value), width_);
    const auto [whole, rest] = Split(value);
    std::string padded = rest;
    if (!is_scientific_) padded.resize(fraction_digits_, ' ');
    return absl::StrCat(PadLeft(whole, whole_), ".", padded);
  }

 private:
  float Quotient(float max, float min) const {
    if (format_ == FloatFormat::kFloat32) return max / min;
    // Near 1000, halves are multiples of 1/2.
    const double quotient = static_cast<double>(max) / min;
    return static_cast<float>(std::nearbyint(quotient * 2) / 2);
  }

  // Splits "-12.5" into "-12" and "5".
  std::pair<std::string, std::string> Split(float value) const {
    const float magnitude = std::fabs(value);
    const std::string text =
        is_scientific_
            ? ScientificText(
                  ExtendedDecimal(format_, magnitude, static_cast<int>(fraction_digits_) + 1),
                  static_cast<int>(fraction_digits_), static_cast<int>(exponent_digits_))
            : PositionalText(RoundedDecimal(format_, magnitude, kPrecision));
    const size_t point = text.find('.');
    return {absl::StrCat(std::signbit(value) ? "-" : "", text.substr(0, point)),
            text.substr(point + 1)};
  }

  void Measure(float value) {
    any_finite_ = true;
    const float magnitude = std::fabs(value);
    if (is_scientific_) {
      const std::string text = ScientificText(ShortestDecimal(format_, magnitude), 0, 2);
      const size_t e = text.find('e');
      fraction_digits_ = std::max(fraction_digits_, e - 2);
      exponent_digits_ = std::max(exponent_digits_, text.size() - e - 2);
      whole_ = std::max<size_t>(whole_, std::signbit(value) ? 2 : 1);
      return;
    }
    const auto [whole, fraction] = Split(value);
    whole_ = std::max(whole_, whole.size());
    fraction_digits_ = std::max(fraction_digits_, fraction.size());
  }

  const FloatFormat format_;
  bool is_scientific_ = false;
  bool any_finite_ = false;
  size_t whole_ = 0;  // characters before the point, with the sign
  size_t fraction_digits_ = 0;
  size_t exponent_digits_ = 0;
  size_t width_ = 0;
};

std::vector<std::string> Words(v1::DataType type, absl::Span<const std::byte> elements) {
  const size_t size = ElementBytes(type);
  const size_t count = elements.size() / size;
  std::vector<std::string> words;
  if (const std::optional<FloatFormat> format = FormatOf(type)) {
    std::vector<float> values;
    for (size_t i = 0; i < count; ++i) values.push_back(FloatAt(*format, &elements[i * size]));
    const FloatColumn column(*format, values);
    for (const float value : values) words.push_back(column.Text(value));
    return words;
  }
  size_t width = 0;
  for (size_t i = 0; i < count; ++i) {
    words.push_back(IntegerText(type, &elements[i * size]));
    width = std::max(width, words.back().size());
  }
  for (std::string& word : words) word = PadLeft(std::move(word), width);
  return words;
}

// Wraps rows as NumPy does: at the line width minus the closing brackets.
class Brackets {
 public:
  Brackets(absl::Span<const uint32_t> sizes, const std::vector<std::string>& words)
      : sizes_(sizes), words_(words) {}

  std::string Text() { return Nest(0, 1, kLineWidth); }

 private:
  std::string Nest(size_t axis, size_t indent, size_t width) {
    const bool is_last = axis + 1 == sizes_.size();
    std::string text = is_last ? Row(indent, width) : "";
    for (uint32_t i = 0; !is_last && i < sizes_[axis]; ++i) {
      if (i > 0) {
        text.append(sizes_.size() - axis - 1, '\n');
        text.append(indent, ' ');
      }
      text += Nest(axis + 1, indent + 1, width - 1);
    }
    return absl::StrCat("[", text, "]");
  }

  std::string Row(size_t indent, size_t width) {
    const std::string prefix(indent, ' ');
    std::string text;
    std::string line = prefix;
    for (uint32_t i = 0; i < sizes_.back(); ++i) {
      const std::string& word = words_[next_++];
      if (line.size() + word.size() > width - 1 && line.size() > prefix.size()) {
        line.erase(line.find_last_not_of(' ') + 1);
        absl::StrAppend(&text, line, "\n");
        line = prefix;
      }
      line += word;
      if (i + 1 < sizes_.back()) line += ' ';
    }
    return (text + line).substr(prefix.size());
  }

  absl::Span<const uint32_t> sizes_;
  const std::vector<std::string>& words_;
  size_t next_ = 0;
};

}  // namespace

double NumberAt(v1::DataType type, const std::byte* element) {
  if (const auto format = FormatOf(type)) return FloatAt(*format, element);
  return std::strtod(IntegerText(type, element).c_str(), nullptr);
}

std::string ElementText(v1::DataType type, const std::byte* element) {
  const auto format = FormatOf(type);
  if (!format) return IntegerText(type, element);
  const float value = FloatAt(*format, element);
  if (!std::isfinite(value)) return NonFiniteText(value);
  const float magnitude = std::fabs(value);
  const bool is_scientific = magnitude != 0 && (magnitude >= 1e16 || magnitude < 1e-4);
  std::string text = is_scientific
                         ? ScientificText(ShortestDecimal(*format, magnitude), 0, 2)
                         : PositionalText(RoundedDecimal(*format, magnitude, kMaxFractionDigits));
  const size_t point = text.find('.');
  if (text.back() == '.') text += '0';
  if (text[point + 1] == 'e') text.erase(point, 1);
  return absl::StrCat(std::signbit(value) ? "-" : "", text);
}

std::string ArrayText(v1::DataType type, absl::Span<const uint32_t> sizes,
                      absl::Span<const std::byte> elements) {
  const std::vector<std::string> words = Words(type, elements);
  return Brackets(sizes, words).Text();
}

}  // namespace opmill
