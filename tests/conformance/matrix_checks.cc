#include "tests/conformance/matrix_checks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/base/half.h"

namespace opmill {
namespace {

// Sums in a tree of blocks of 384 products; other devices add one product after the other.
constexpr uint64_t kBlock = 384;

double Rounded(DataType type, double value) {
  return type == DataType::kFloat16 ? HalfToFloat(FloatToHalf(value)) : static_cast<float>(value);
}

}  // namespace

// Padded, and every second element.
void Spread(TensorDesc& tensor) {
  tensor.strides.assign(tensor.sizes.size(), 0);
  uint32_t stride = 2;
  for (size_t d = tensor.sizes.size(); d-- > 0;) {
    tensor.strides[d] = stride;
    stride = stride * tensor.sizes[d] + 3;
  }
}

std::vector<Bytes> InputsOf(const OperatorDesc& desc, ValuePattern values) {
  std::vector<Bytes> inputs;
  for (const TensorDesc& input : desc.inputs) {
    inputs.push_back(
        MakeValues(values, input.data_type, RequiredBytes(input), 1, inputs.size() + 21));
  }
  return inputs;
}

double ElementAt(const TensorDesc& desc, const Bytes& bytes, const Coordinate& coordinate) {
  const uint64_t at =
      ElementOffset(coordinate, EffectiveStrides(desc)) * ElementBytes(desc.data_type);
  if (desc.data_type == DataType::kFloat16) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + at, sizeof(bits));
    return HalfToFloat(bits);
  }
  float number;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

std::string FindProductMistake(const OperatorDesc& desc, const std::vector<Bytes>& inputs,
                               const std::vector<Bytes>& outputs, bool is_tree,
                               const MagnitudeOf& magnitude_of) {
  const TensorDesc& tensor = *desc.outputs[0];
  std::string mistake;
  const std::vector<absl::Span<const std::byte>> spans(inputs.begin(), inputs.end());
  std::vector<bool> is_written(RequiredBytes(tensor) / ElementBytes(tensor.data_type), false);
  ForEachExactProduct(desc, spans, {}, [&](const Coordinate& at, const ExactProduct& exact) {
    is_written[ElementOffset(at, EffectiveStrides(tensor))] = true;
    if (!mistake.empty()) return;
    const double steps = static_cast<double>(
        is_tree ? std::min(exact.count, kBlock) + exact.count / kBlock + 4 : exact.count + 4);
    const double magnitude =
        magnitude_of == nullptr ? exact.sum_of_magnitudes : magnitude_of(at, exact);
    const double bound = steps * (magnitude * 0x1p-24 + 0x1p-126);
    const double low = Rounded(tensor.data_type, exact.value - bound);
    const double high = Rounded(tensor.data_type, exact.value + bound);
    for (const Bytes& output : outputs) {
      const double got = ElementAt(tensor, output, at);
      if (got == exact.value || (std::isnan(exact.value) && std::isnan(got))) continue;
      if (got >= low && got <= high) continue;
      mistake = absl::StrCat("element [", at[0], ",", at[1], ",...,", at.back(), "] of output ",
                             &output - outputs.data(), " is ", got, " instead of ", exact.value,
                             " +- ", bound);
    }
  });
  for (const Bytes& output : outputs) {
    for (size_t i = 0; i < is_written.size() && mistake.empty(); ++i) {
      const size_t size = ElementBytes(tensor.data_type);
      const bool is_zero = std::all_of(output.data() + i * size, output.data() + (i + 1) * size,
                                       [](std::byte b) { return b == std::byte{0}; });
      if (!is_written[i] && !is_zero) mistake = absl::StrCat("gap ", i, " is not zero");
    }
  }
  return mistake;
}

}  // namespace opmill
