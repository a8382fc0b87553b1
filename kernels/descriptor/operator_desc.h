// What a caller asks for: DirectML's operator descriptors as data.
#ifndef OPMILL_KERNELS_DESCRIPTOR_OPERATOR_DESC_H_
#define OPMILL_KERNELS_DESCRIPTOR_OPERATOR_DESC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {

enum class AxisDirection : uint32_t { kIncreasing = 0, kDecreasing = 1 };

// DirectML's order.
enum class ReduceFunction : uint32_t {
  kArgMax = 0,
  kArgMin = 1,
  kAverage = 2,
  kL1 = 3,
  kL2 = 4,
  kLogSum = 5,
  kLogSumExp = 6,
  kMax = 7,
  kMin = 8,
  kMultiply = 9,
  kSum = 10,
  kSumSquare = 11,
};
inline constexpr uint32_t kReduceFunctionCount = 12;

enum class Extreme : uint32_t { kMin = 0, kMax = 1 };

// DML_OPERATOR_ARGMIN, DML_OPERATOR_ARGMAX
struct ArgReduceDesc {
  Extreme extreme = Extreme::kMax;
  TensorDesc input;
  std::optional<TensorDesc> output;  // without one: packed UINT32
  std::vector<uint32_t> axes;
  AxisDirection axis_direction = AxisDirection::kIncreasing;

  friend bool operator==(const ArgReduceDesc&, const ArgReduceDesc&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ArgReduceDesc& d) {
    return H::combine(std::move(h), d.extreme, d.input, d.output.value_or(TensorDesc{}), d.axes,
                      d.axis_direction);
  }
};

// DML_OPERATOR_REDUCE
struct ReduceDesc {
  ReduceFunction function = ReduceFunction::kSum;
  TensorDesc input;
  std::optional<TensorDesc> output;  // without one: packed, the input's type (UINT32 for ARG*)
  std::vector<uint32_t> axes;

  friend bool operator==(const ReduceDesc&, const ReduceDesc&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ReduceDesc& d) {
    return H::combine(std::move(h), d.function, d.input, d.output.value_or(TensorDesc{}), d.axes);
  }
};

// DML_OPERATOR_TOP_K1, and DML_OPERATOR_TOP_K with kDecreasing
struct TopKDesc {
  TensorDesc input;
  std::optional<TensorDesc> output_values;   // without one: packed
  std::optional<TensorDesc> output_indices;  // without one: packed UINT32
  uint32_t axis = 0;
  uint32_t k = 0;
  AxisDirection axis_direction = AxisDirection::kDecreasing;

  friend bool operator==(const TopKDesc&, const TopKDesc&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const TopKDesc& d) {
    return H::combine(std::move(h), d.input, d.output_values.value_or(TensorDesc{}),
                      d.output_indices.value_or(TensorDesc{}), d.axis, d.k, d.axis_direction);
  }
};

// DML_OPERATOR_ACTIVATION_HARDMAX1, and ACTIVATION_HARDMAX with the last axis
struct HardmaxDesc {
  TensorDesc input;
  std::optional<TensorDesc> output;  // without one: packed
  std::vector<uint32_t> axes;

  friend bool operator==(const HardmaxDesc&, const HardmaxDesc&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const HardmaxDesc& d) {
    return H::combine(std::move(h), d.input, d.output.value_or(TensorDesc{}), d.axes);
  }
};

using OperatorDesc = std::variant<ArgReduceDesc, ReduceDesc, TopKDesc, HardmaxDesc>;

// For hash maps: absl::flat_hash_map<OperatorDesc, V, OperatorDescHash>.
struct OperatorDescHash {
  size_t operator()(const OperatorDesc& desc) const;
};

absl::string_view ToString(ReduceFunction function);       // "LOG_SUM_EXP"
absl::string_view OperatorName(const OperatorDesc& desc);  // "argmin", "reduce", "top_k", ...
const TensorDesc& InputOf(const OperatorDesc& desc);
// The outputs of a validated descriptor (all present): one, or values then indices for top_k.
std::vector<TensorDesc> OutputsOf(const OperatorDesc& desc);
std::string ToString(const OperatorDesc& desc);  // one line, enough to repeat the call

}  // namespace opmill

#endif  // OPMILL_KERNELS_DESCRIPTOR_OPERATOR_DESC_H_
