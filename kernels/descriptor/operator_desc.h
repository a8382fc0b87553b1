// The descriptor of a DirectML operator as data.
#ifndef OPMILL_KERNELS_DESCRIPTOR_OPERATOR_DESC_H_
#define OPMILL_KERNELS_DESCRIPTOR_OPERATOR_DESC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {

struct OperatorSchema;

// DML_AXIS_DIRECTION, an attribute of several operators.
enum class AxisDirection : uint32_t { kIncreasing = 0, kDecreasing = 1 };

// The values of an attribute: any number of them for a list of axes, otherwise exactly one.
using AttributeValues = std::vector<uint32_t>;

// Tensors and attributes are in the order of the schema. Every operator family has a typed form of
// its descriptors (kernels/operators/*/*_desc.h), which converts to this one and back.
struct OperatorDesc {
  const OperatorSchema* schema = nullptr;  // null only in a default-constructed descriptor
  std::vector<TensorDesc> inputs;
  std::vector<std::optional<TensorDesc>> outputs;  // Validate infers omitted ones
  std::vector<AttributeValues> attributes;

  // The values of the attribute with that name, which the schema must have.
  const AttributeValues& list(absl::string_view attribute) const;
  uint32_t number(absl::string_view attribute) const { return list(attribute).front(); }
  template <typename Enum>
  Enum choice(absl::string_view attribute) const {
    return static_cast<Enum>(number(attribute));
  }

  friend bool operator==(const OperatorDesc&, const OperatorDesc&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const OperatorDesc& d) {
    h = H::combine(std::move(h), d.schema, d.inputs, d.attributes);
    // Abseil cannot hash std::optional if it was built for C++14.
    for (const auto& output : d.outputs) {
      h = H::combine(std::move(h), output.has_value());
      if (output.has_value()) h = H::combine(std::move(h), *output);
    }
    return h;
  }
};

absl::string_view OperatorName(const OperatorDesc& desc);  // "argmin", "reduce", "top_k", ...
// The outputs of a validated descriptor.
std::vector<TensorDesc> OutputsOf(const OperatorDesc& desc);
std::string ToString(const OperatorDesc& desc);  // one line, sufficient to repeat the call

}  // namespace opmill

#endif  // OPMILL_KERNELS_DESCRIPTOR_OPERATOR_DESC_H_
