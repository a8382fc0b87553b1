#include <bit>
#include <type_traits>

#include "kernels/base/integer_types.h"
#include "kernels/operators/elementwise/element_wise_chain.h"
#include "kernels/operators/elementwise/element_wise_support.h"
#include "kernels/operators/elementwise/integer_functions.h"
#include "kernels/operators/elementwise/reference_functions.h"
#include "kernels/reference/element_access.h"

namespace opmill::element_wise {
namespace {

#define OPMILL_INLINE
#include "kernels/operators/elementwise/element_wise_expression.h"
#undef OPMILL_INLINE

constexpr DataTypeSet kIntegers = {DataType::kInt64, DataType::kInt32, DataType::kInt16,
                                   DataType::kInt8};
constexpr DataTypeSet kNaturals = {DataType::kUint64, DataType::kUint32, DataType::kUint16,
                                   DataType::kUint8};
constexpr bool Intersects(DataTypeSet a, DataTypeSet b) {
  for (const DataType type : kAllDataTypes) {
    if (a.Contains(type) && b.Contains(type)) return true;
  }
  return false;
}

// The parameter as a number, or as a mode.
template <typename P>
P ParameterAs(const ChainStep& step, size_t index) {
  if (index >= step.parameters.size()) return P{};
  const uint64_t bits = step.parameters[index];
  if constexpr (Real<P>) {
    return static_cast<P>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  } else {
    return static_cast<P>(bits);
  }
}

template <ElementWiseOp op, typename T, bool has_mode>
auto Apply(const ChainStep& step, const T (&x)[3]) {
  using P = std::conditional_t<has_mode, uint32_t, T>;
  return Expression<op, T, P>::Of(x[0], x[1], x[2], ParameterAs<P>(step, 0),
                                  ParameterAs<P>(step, 1));
}

// The bits of the step's result for operands of type T.
template <typename T>
uint64_t Evaluate(const ChainStep& step, const T (&x)[3]) {
  const auto bits_of = [&](auto value) -> uint64_t {
    using V = decltype(value);
    if constexpr (Real<V>) {
      return FromDouble(step.type, static_cast<double>(value));
    } else {
      return static_cast<uint64_t>(value);
    }
  };
  switch (step.op) {
#define OPMILL_ELEMENT_WISE(inputs, Name, name, alias, summary, support, result, attributes, ...) \
  case ElementWiseOp::k##Name:                                                                    \
    if constexpr (Intersects(support[0].types, Real<T>               ? kFloats                    \
                                               : std::is_signed_v<T> ? kIntegers                  \
                                                                     : kNaturals) &&              \
                  (!Real<T> || !TakesBits(ElementWiseResult::result))) {                          \
      return bits_of(Apply<ElementWiseOp::k##Name, T, HasMode(attributes)>(step, x));             \
    }                                                                                             \
    break;
#include "kernels/operators/elementwise/element_wise_rows.inc"
#undef OPMILL_ELEMENT_WISE
  }
  return 0;
}

uint64_t CastBits(DataType from, DataType to, uint64_t bits) {
  if (IsFloat(from)) {
    if (IsNan(from, bits) && IsFloat(to)) return CanonicalNan(to);
    const double value = ToDouble(from, bits);
    if (IsFloat(to)) return FromDouble(to, value);
    return VisitInteger(to,
                        [&](auto t) { return static_cast<uint64_t>(CastTo<decltype(t)>(value)); });
  }
  if (!IsFloat(to)) return bits;  // sign-extended; the low bits are kept
  // An integer is rounded to FLOAT32 once.
  const float value =
      IsSigned(from) ? static_cast<float>(static_cast<int64_t>(bits)) : static_cast<float>(bits);
  return FromDouble(to, value);
}

// Operands and result as bits, sign-extended for signed integers.
uint64_t StepBits(const ChainStep& step, DataType type, const uint64_t (&bits)[3]) {
  const ElementWiseRow& row = RowOf(step.op);
  if (row.result == ElementWiseResult::kCast) return CastBits(type, step.type, bits[0]);
  if (row.inputs == ElementWiseInputs::kIf) return (bits[0] & 0xFF) != 0 ? bits[1] : bits[2];
  if (row.result == ElementWiseResult::kMove) return bits[0];
  if (IsFloat(type) && row.ulps == 0) {
    float x[3];
    for (size_t i = 0; i < 3; ++i) x[i] = static_cast<float>(ToDouble(type, bits[i]));
    return Evaluate(step, x);
  }
  if (IsFloat(type)) {
    double x[3];
    for (size_t i = 0; i < 3; ++i) x[i] = ToDouble(type, bits[i]);
    return Evaluate(step, x);
  }
  return VisitInteger(type, [&](auto t) {
    decltype(t) x[3];
    for (size_t i = 0; i < 3; ++i) x[i] = static_cast<decltype(t)>(bits[i]);
    return Evaluate(step, x);
  });
}

}  // namespace
}  // namespace opmill::element_wise

namespace opmill {

void ReferenceElementWise(const ReferenceCall& call) {
  const Chain chain = ChainOf(call.desc);
  std::vector<Reader> readers;
  for (size_t i = 0; i < chain.inputs.size(); ++i) {
    readers.emplace_back(chain.inputs[i], call.inputs[i]);
  }
  Writer writer(chain.output, call.outputs[0]);
  std::vector<uint64_t> values(chain.inputs.size() + chain.steps.size());
  ForEachCoordinate(chain.output.sizes, call.abandoned, [&](const Coordinate& coordinate) {
    for (size_t i = 0; i < readers.size(); ++i) values[i] = readers[i].At(coordinate);
    size_t next = readers.size();
    for (const ChainStep& step : chain.steps) {
      uint64_t bits[3] = {};
      for (size_t i = 0; i < step.operands.size(); ++i) bits[i] = values[step.operands[i]];
      const uint64_t result =
          element_wise::StepBits(step, chain.TypeOf(step.operands.back()), bits);
      values[next++] = SignExtended(step.type, result);
    }
    writer.Store(coordinate, values.back());
  });
}

}  // namespace opmill
