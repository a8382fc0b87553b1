#include "server/api/made_up_inputs.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/half.h"

namespace opmill {
namespace {

// The finalizer of MurmurHash3.
uint32_t Mix(uint64_t index) {
  auto bits = static_cast<uint32_t>(index ^ index >> 32);
  bits = (bits ^ bits >> 16) * 0x85ebca6bu;
  bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
  return bits ^ bits >> 16;
}

// Little endian: the first bytes of the result are those of the element.
uint64_t ElementAt(DataType type, uint64_t index) {
  const uint32_t random = Mix(index);
  if (!IsFloat(type)) return random & 1;
  const float number = static_cast<float>(random >> 8) * 0x1p-24f;
  if (type == DataType::kFloat16) return FloatToHalf(number);
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

// `offset` is a multiple of the elements' size, as parts of inputs begin at large powers of two.
void Fill(DataType type, uint64_t offset, absl::Span<std::byte> to) {
  const size_t size = ElementBytes(type);
  for (size_t at = 0; at < to.size(); at += size) {
    const uint64_t element = ElementAt(type, (offset + at) / size);
    std::memcpy(to.data() + at, &element, std::min(size, to.size() - at));
  }
}

}  // namespace

std::vector<InputSource> MadeUpInputs(const std::vector<TensorDesc>& inputs) {
  std::vector<InputSource> sources;
  for (const TensorDesc& input : inputs) {
    sources.push_back({[type = input.data_type](uint64_t offset, absl::Span<std::byte> to) {
      Fill(type, offset, to);
      return absl::OkStatus();
    }});
  }
  return sources;
}

}  // namespace opmill
