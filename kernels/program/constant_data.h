// The bytes of a constant of a program.
#ifndef OPMILL_KERNELS_PROGRAM_CONSTANT_DATA_H_
#define OPMILL_KERNELS_PROGRAM_CONSTANT_DATA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/types/span.h"

namespace opmill {

// Immutable: programs, and the programs compiled from them, share it. Has a digest of its bytes, so
// that comparing and hashing programs does not read megabytes.
class ConstantData {
 public:
  static constexpr size_t kAlignment = 64;

  // Copies them, and computes the digest.
  static std::shared_ptr<const ConstantData> Of(absl::Span<const std::byte> bytes);

  // At a multiple of kAlignment, and followed by zeros up to one.
  const std::byte* data() const { return blocks_[0].bytes; }
  uint64_t size() const { return size_; }
  const std::string& digest() const { return digest_; }  // equal for equal bytes only

  friend bool operator==(const ConstantData& a, const ConstantData& b) {
    return a.size_ == b.size_ && a.digest_ == b.digest_;
  }
  template <typename H>
  friend H AbslHashValue(H h, const ConstantData& c) {
    return H::combine(std::move(h), c.digest_);
  }

 private:
  struct alignas(kAlignment) Block {
    std::byte bytes[kAlignment];
  };

  explicit ConstantData(absl::Span<const std::byte> bytes);

  const uint64_t size_;
  const std::unique_ptr<Block[]> blocks_;
  const std::string digest_;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_PROGRAM_CONSTANT_DATA_H_
