// The descriptors of argmin, argmax and reduce in typed form.
#ifndef OPMILL_KERNELS_OPERATORS_REDUCTION_REDUCTION_DESC_H_
#define OPMILL_KERNELS_OPERATORS_REDUCTION_REDUCTION_DESC_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/descriptor/operator_desc.h"

namespace opmill {

extern const OperatorSchema kArgMinSchema;
extern const OperatorSchema kArgMaxSchema;
extern const OperatorSchema kReduceSchema;

enum class Extreme : uint32_t { kMin = 0, kMax = 1 };

// DML_OPERATOR_ARGMIN, DML_OPERATOR_ARGMAX
struct ArgReduceDesc {
  Extreme extreme = Extreme::kMax;
  TensorDesc input;
  std::optional<TensorDesc> output;  // default: packed UINT32
  std::vector<uint32_t> axes;
  AxisDirection axis_direction = AxisDirection::kIncreasing;

  operator OperatorDesc() const;  // NOLINT(google-explicit-constructor): equivalent forms
  static ArgReduceDesc From(const OperatorDesc& desc);
};

// DML_REDUCE_FUNCTION, in its order.
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
absl::string_view ToString(ReduceFunction function);  // "LOG_SUM_EXP"

constexpr bool GivesIndices(ReduceFunction function) {
  return function == ReduceFunction::kArgMax || function == ReduceFunction::kArgMin;
}

// DML_OPERATOR_REDUCE
struct ReduceDesc {
  ReduceFunction function = ReduceFunction::kSum;
  TensorDesc input;
  std::optional<TensorDesc> output;  // default: packed, the input's type (UINT32 for ARG*)
  std::vector<uint32_t> axes;

  operator OperatorDesc() const;  // NOLINT(google-explicit-constructor): equivalent forms
  static ReduceDesc From(const OperatorDesc& desc);
  // The equivalent argmin or argmax. Only for a function that gives indices.
  ArgReduceDesc AsArgReduce() const;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_REDUCTION_REDUCTION_DESC_H_
