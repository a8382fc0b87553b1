// The constants of a dispatch: the struct of its kernel, from shaders/*_constants.h.
#ifndef OPMILL_KERNELS_PLAN_KERNEL_CONSTANTS_H_
#define OPMILL_KERNELS_PLAN_KERNEL_CONSTANTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <typeindex>

#include "absl/types/span.h"
#include "kernels/base/rounding.h"
#include "shaders/constants.h"

namespace opmill {

// A copy of one such struct, of any kernel. All of them begin with GroupConstants, which a device
// changes when it cuts a dispatch.
class KernelConstants {
 public:
  static constexpr size_t kMaxBytes = 640;

  KernelConstants() = default;

  template <typename T>
  // NOLINTNEXTLINE(google-explicit-constructor): it holds what it is made of
  requires std::is_same_v<decltype(T::groups), GroupConstants> KernelConstants(const T& constants)
      : type_(typeid(T)), size_bytes_(RoundUp(sizeof(T), kRowBytes)) {
    static_assert(offsetof(T, groups) == 0 && sizeof(GroupConstants) == kRowBytes);
    static_assert(std::is_trivially_copyable_v<T> && RoundUp(sizeof(T), kRowBytes) <= kMaxBytes);
    std::memcpy(bytes_.data(), &constants, sizeof(T));
  }

  template <typename T>
  bool Holds() const {
    return type_ == typeid(T);
  }
  // Zeros unless it holds a T.
  template <typename T>
  T As() const {
    T constants = {};
    if (Holds<T>()) std::memcpy(&constants, bytes_.data(), sizeof(T));
    return constants;
  }

  GroupConstants groups() const {
    GroupConstants groups;
    std::memcpy(&groups, bytes_.data(), sizeof(groups));
    return groups;
  }
  void set_groups(const GroupConstants& groups) {
    std::memcpy(bytes_.data(), &groups, sizeof(groups));
  }

  // In whole rows, as kernels read them from b0.
  absl::Span<const std::byte> bytes() const {
    return absl::MakeConstSpan(bytes_).first(size_bytes_);
  }

 private:
  static constexpr size_t kRowBytes = 16;

  std::type_index type_ = typeid(GroupConstants);
  size_t size_bytes_ = sizeof(GroupConstants);
  std::array<std::byte, kMaxBytes> bytes_ = {};
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_PLAN_KERNEL_CONSTANTS_H_
