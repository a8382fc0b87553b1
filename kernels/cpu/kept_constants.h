// What operators keep of constants, in a form of their own, such as packed weights. Programs of the
// same constants share it.
#ifndef OPMILL_KERNELS_CPU_KEPT_CONSTANTS_H_
#define OPMILL_KERNELS_CPU_KEPT_CONSTANTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace opmill {

// What numbers are computed from, and how. Equal keys have equal numbers.
struct KeptKey {
  std::vector<std::string> digests;  // of the constants, which it does not keep alive
  std::string form;

  bool operator==(const KeptKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const KeptKey& key) {
    return H::combine(std::move(h), key.digests, key.form);
  }
};

// Immutable. Released with the last program that has it.
class KeptFloats {
 public:
  ~KeptFloats();
  KeptFloats(const KeptFloats&) = delete;
  KeptFloats& operator=(const KeptFloats&) = delete;

  const float* data() const { return floats_.get(); }
  uint64_t bytes() const { return count_ * sizeof(float); }

 private:
  friend class KeptConstants;
  struct Shared;

  KeptFloats(std::shared_ptr<Shared> shared, KeptKey key, uint64_t count);

  const std::shared_ptr<Shared> shared_;
  const KeptKey key_;
  const uint64_t count_;
  const std::unique_ptr<float[]> floats_;
};

// Those of all programs of a device. Thread-safe; what it returns may outlive it.
class KeptConstants {
 public:
  // False if the work was abandoned; then there are no numbers.
  using Write = absl::FunctionRef<bool(float* to)>;

  KeptConstants();

  // `write` writes `count` numbers, which are zero before, unless there are any for this key. Null
  // if it returns false.
  std::shared_ptr<const KeptFloats> Get(KeptKey key, uint64_t count, Write write);

  size_t size() const;

 private:
  const std::shared_ptr<KeptFloats::Shared> shared_;
};

// A constant that an operator reads.
class ConstantInput {
 public:
  // `bytes` returns its elements, which may have to be computed first; null if that was abandoned.
  ConstantInput(KeptConstants& kept, KeptKey key, std::function<const std::byte*()> bytes)
      : kept_(kept), key_(std::move(key)), bytes_(std::move(bytes)) {}

  // `count` numbers in the form that `form` describes, which `write` makes of the elements. Null if
  // the work was abandoned.
  std::shared_ptr<const KeptFloats> Keep(
      const std::string& form, uint64_t count,
      absl::FunctionRef<void(const std::byte* bytes, float* to)> write) const;

 private:
  KeptConstants& kept_;
  const KeptKey key_;
  const std::function<const std::byte*()> bytes_;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_KEPT_CONSTANTS_H_
