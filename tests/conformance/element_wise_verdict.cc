#include "tests/conformance/element_wise_verdict.h"

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/operators/elementwise/element_wise.h"
#include "kernels/operators/operator_reference.h"
#include "kernels/reference/element_access.h"

namespace opmill {
namespace {

// True if the operator computes new numbers, so that denormals may be flushed.
bool IsArithmetic(const ElementWiseRow& row) {
  for (const absl::string_view sign :
       {" + ", " - ", " * ", " / ", "Add(", "Sub(", "Mul(", "Average(", "Mod"}) {
    if (absl::StrContains(row.expression, sign)) return true;
  }
  return row.ulps > 0;
}

// The FLOAT32 elements, with zeros instead of denormals.
std::vector<std::byte> Flushed(std::vector<std::byte> elements) {
  for (size_t at = 0; at + sizeof(uint32_t) <= elements.size(); at += sizeof(uint32_t)) {
    uint32_t bits;
    std::memcpy(&bits, elements.data() + at, sizeof(bits));
    if ((bits & 0x7F80'0000) == 0) bits &= 0x8000'0000;
    std::memcpy(elements.data() + at, &bits, sizeof(bits));
  }
  return elements;
}

// Functions of large angles, and remainders of large quotients, are not accurate.
bool IsOutside(const ElementWiseRow& row, DataType type, const std::vector<uint64_t>& operands) {
  const double a = ToDouble(type, operands[0]);
  const absl::string_view expression = row.expression;
  if (expression == "Sin(x)" || expression == "Cos(x)" || expression == "Tan(x)") {
    return std::isfinite(a) && std::abs(a) > 8192;
  }
  if (!absl::StrContains(expression, "Mod")) return false;
  const double b = ToDouble(type, operands[1]);
  return std::isfinite(a) && !(std::abs(a / b) < 0x1p22);
}

// The distance of two numbers, in numbers between them.
uint64_t Distance(DataType type, uint64_t a, uint64_t b) {
  const auto signed_key = [&](uint64_t bits) {
    return static_cast<int64_t>(TotalOrderKey(type, bits));
  };
  return static_cast<uint64_t>(std::llabs(signed_key(a) - signed_key(b)));
}

bool IsSignalling(DataType type, uint64_t bits) {
  const uint64_t quiet = type == DataType::kFloat32 ? 0x0040'0000 : 0x0200;
  return IsNan(type, bits) && (bits & quiet) == 0;
}

bool HasSignalling(const OperatorDesc& desc, const std::vector<uint64_t>& operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (IsSignalling(desc.inputs[i].data_type, operands[i])) return true;
  }
  return false;
}

bool Accepts(const ElementWiseRow& row, const OperatorDesc& desc,
             const std::vector<uint64_t>& operands, uint64_t want, uint64_t got) {
  if (got == want) return true;
  const DataType type = desc.outputs[0]->data_type;
  if (!IsFloat(type) || row.result == ElementWiseResult::kMove) return false;
  if (IsNan(type, want)) {
    return IsNan(type, got) && (!IsSignalling(type, got) || HasSignalling(desc, operands));
  }
  const DataType from = desc.inputs[0].data_type;
  if (IsFloat(from) && IsOutside(row, from, operands)) return true;
  if (IsArithmetic(row) && type == DataType::kFloat32) {
    const double both = std::abs(ToDouble(type, want)) + std::abs(ToDouble(type, got));
    if (both <= 2 * double{FLT_MIN}) return true;
  }
  if (row.ulps == 0 || IsNan(type, got)) return false;
  // The error of FLOAT32 is at most a rounding of FLOAT16.
  const double most = type == DataType::kFloat16 ? 1 : std::ceil(row.ulps) + 1;
  return static_cast<double>(Distance(type, want, got)) <= most;
}

}  // namespace

std::string FindElementWiseMistake(const OperatorDesc& validated,
                                   const std::vector<std::vector<std::byte>>& inputs,
                                   const std::vector<std::byte>& output) {
  const TensorDesc& desc = *validated.outputs[0];
  const ElementWiseRow& row = RowOf(*ElementWiseOpOf(*validated.schema));
  const std::vector<absl::Span<const std::byte>> spans(inputs.begin(), inputs.end());
  std::vector<std::byte> expected(output.size());
  absl::Status status = ReferenceRun(validated, spans, {absl::MakeSpan(expected)});
  if (!status.ok()) return std::string(status.message());
  // What devices give that flush denormal operands.
  std::vector<std::byte> from_flushed = expected;
  if (IsArithmetic(row) && validated.inputs[0].data_type == DataType::kFloat32) {
    std::vector<std::vector<std::byte>> flushed;
    for (const std::vector<std::byte>& input : inputs) flushed.push_back(Flushed(input));
    const std::vector<absl::Span<const std::byte>> of_flushed(flushed.begin(), flushed.end());
    status = ReferenceRun(validated, of_flushed, {absl::MakeSpan(from_flushed)});
    if (!status.ok()) return std::string(status.message());
  }
  std::vector<Reader> operands;
  for (size_t i = 0; i < inputs.size(); ++i) operands.emplace_back(validated.inputs[i], spans[i]);
  const Reader wanted(desc, expected);
  const Reader wanted_if_flushed(desc, from_flushed);
  const Reader given(desc, output);
  std::vector<std::byte> gaps = output;
  std::string mistake;
  ForEachCoordinate(desc.sizes, {}, [&](const Coordinate& at) {
    std::memset(
        gaps.data() + ElementOffset(at, EffectiveStrides(desc)) * ElementBytes(desc.data_type), 0,
        ElementBytes(desc.data_type));
    if (!mistake.empty()) return;
    std::vector<uint64_t> bits;
    for (const Reader& operand : operands) bits.push_back(operand.At(at));
    const uint64_t want = wanted.At(at);
    const uint64_t got = given.At(at);
    if (Accepts(row, validated, bits, want, got) ||
        Accepts(row, validated, bits, wanted_if_flushed.At(at), got)) {
      return;
    }
    mistake = "the element of operands";
    for (const uint64_t operand : bits) absl::StrAppend(&mistake, " 0x", absl::Hex(operand));
    absl::StrAppend(&mistake, " is 0x", absl::Hex(got), " instead of 0x", absl::Hex(want));
  });
  if (!mistake.empty()) return mistake;
  for (const std::byte gap : gaps) {
    if (gap != std::byte{0}) return "the output is not zero between elements";
  }
  return "";
}

}  // namespace opmill
