// The descriptor of a DirectML operator as data.
#ifndef OPMILL_KERNELS_DESCRIPTOR_OPERATOR_DESC_H_
#define OPMILL_KERNELS_DESCRIPTOR_OPERATOR_DESC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {

struct OperatorSchema;

// DML_AXIS_DIRECTION, an attribute of several operators.
enum class AxisDirection : uint32_t { kIncreasing = 0, kDecreasing = 1 };

// A number of a tensor's type. Validate converts it to double for floats, to int64_t for signed and
// to uint64_t for unsigned integers, so that equal descriptors are equal keys.
using Scalar = std::variant<int64_t, uint64_t, double>;
// The value of an attribute; its AttributeKind says which alternative it has.
using AttributeValue = std::variant<uint32_t, int32_t, float, Scalar, std::vector<uint32_t>,
                                    std::vector<int32_t>, std::vector<float>>;

// Tensors and attributes are in the order of the schema. Every operator family has a typed form of
// its descriptors (kernels/operators/*/*_desc.h), which converts to this one and back.
struct OperatorDesc {
  const OperatorSchema* schema = nullptr;  // null only in a default-constructed descriptor
  std::vector<TensorDesc> inputs;
  std::vector<std::optional<TensorDesc>> outputs;  // Validate infers omitted ones
  std::vector<AttributeValue> attributes;
  // Devices that can compute it so that no result is rounded differently if there are more or fewer
  // others: requests that are joined to a batch get the same bits as alone.
  bool is_batched = false;

  // The value of the attribute with that name, which the schema must have.
  template <typename T>
  const T& value(absl::string_view attribute) const {
    return std::get<T>(attributes[AttributeIndex(attribute)]);
  }
  const std::vector<uint32_t>& list(absl::string_view attribute) const {
    return value<std::vector<uint32_t>>(attribute);
  }
  uint32_t number(absl::string_view attribute) const { return value<uint32_t>(attribute); }
  template <typename Enum>
  Enum choice(absl::string_view attribute) const {
    return static_cast<Enum>(number(attribute));
  }

  friend bool operator==(const OperatorDesc&, const OperatorDesc&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const OperatorDesc& d) {
    h = H::combine(std::move(h), d.schema, d.inputs, d.is_batched);
    // Abseil cannot hash std::optional and std::variant if it was built for C++14.
    for (const AttributeValue& attribute : d.attributes) h = Combine(std::move(h), attribute);
    for (const auto& output : d.outputs) {
      h = H::combine(std::move(h), output.has_value());
      if (output.has_value()) h = H::combine(std::move(h), *output);
    }
    return h;
  }

 private:
  template <typename H, typename... T>
  static H Combine(H h, const std::variant<T...>& value) {
    return std::visit([&](const auto& held) { return Combine(std::move(h), held); }, value);
  }
  template <typename H, typename T>
  static H Combine(H h, const T& value) {
    return H::combine(std::move(h), value);
  }

  size_t AttributeIndex(absl::string_view attribute) const;
};

absl::string_view OperatorName(const OperatorDesc& desc);  // "argmin", "reduce", "top_k", ...
// The outputs of a validated descriptor.
std::vector<TensorDesc> OutputsOf(const OperatorDesc& desc);
std::string ToString(const OperatorDesc& desc);  // one line, sufficient to repeat the call

}  // namespace opmill

#endif  // OPMILL_KERNELS_DESCRIPTOR_OPERATOR_DESC_H_
