#include "kernels/program/constant_data.h"

#include <cstring>

#include "absl/memory/memory.h"
#include "absl/strings/string_view.h"
#include "kernels/base/sha256.h"

namespace opmill {

std::shared_ptr<const ConstantData> ConstantData::Of(absl::Span<const std::byte> bytes) {
  return absl::WrapUnique(new const ConstantData(bytes));
}

ConstantData::ConstantData(absl::Span<const std::byte> bytes)
    : size_(bytes.size()),
      blocks_(new Block[bytes.size() / kAlignment + 1]()),
      digest_(Sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {
  if (!bytes.empty()) std::memcpy(blocks_[0].bytes, bytes.data(), bytes.size());
}

}  // namespace opmill
