#include <bit>
#include <cstring>

#include "kernels/operators/elementwise/element_wise_kernels.h"
#include "kernels/operators/elementwise/element_wise_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/operators/elementwise/element_wise_floats_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<float> df;
constexpr hn::RebindToUnsigned<decltype(df)> du;
constexpr hn::RebindToSigned<decltype(df)> di;

// The types of shaders/include/functions.hlsli, where scalars become vectors implicitly.
// NOLINTBEGIN(google-explicit-constructor)
struct Floats {
  hn::Vec<decltype(df)> v;
  HWY_INLINE Floats(hn::Vec<decltype(df)> vector) : v(vector) {}
  HWY_INLINE Floats(float number) : v(hn::Set(df, number)) {}
};
struct Uints {
  hn::Vec<decltype(du)> v;
  HWY_INLINE Uints(hn::Vec<decltype(du)> vector) : v(vector) {}
  HWY_INLINE Uints(uint32_t number) : v(hn::Set(du, number)) {}
};
struct Ints {
  hn::Vec<decltype(di)> v;
  HWY_INLINE Ints(hn::Vec<decltype(di)> vector) : v(vector) {}
  HWY_INLINE Ints(int32_t number) : v(hn::Set(di, number)) {}
};
// NOLINTEND(google-explicit-constructor)
struct Bools {
  hn::Mask<decltype(df)> m;
};

HWY_INLINE Uints asuint(Floats x) { return hn::BitCast(du, x.v); }
HWY_INLINE Uints asuint(Ints x) { return hn::BitCast(du, x.v); }
HWY_INLINE Ints asint(Floats x) { return hn::BitCast(di, x.v); }
HWY_INLINE Ints asint(Uints x) { return hn::BitCast(di, x.v); }
HWY_INLINE Floats asfloat(Uints x) { return hn::BitCast(df, x.v); }
HWY_INLINE Ints ToInts(Floats x) { return hn::ConvertTo(di, x.v); }
HWY_INLINE Floats ToFloats(Ints x) { return hn::ConvertTo(df, x.v); }

HWY_INLINE Floats operator+(Floats a, Floats b) { return hn::Add(a.v, b.v); }
HWY_INLINE Floats operator-(Floats a, Floats b) { return hn::Sub(a.v, b.v); }
HWY_INLINE Floats operator*(Floats a, Floats b) { return hn::Mul(a.v, b.v); }
HWY_INLINE Floats operator/(Floats a, Floats b) { return hn::Div(a.v, b.v); }
HWY_INLINE Floats operator-(Floats a) { return hn::Neg(a.v); }
HWY_INLINE Uints operator+(Uints a, Uints b) { return hn::Add(a.v, b.v); }
HWY_INLINE Uints operator-(Uints a, Uints b) { return hn::Sub(a.v, b.v); }
HWY_INLINE Uints operator&(Uints a, Uints b) { return hn::And(a.v, b.v); }
HWY_INLINE Uints operator|(Uints a, Uints b) { return hn::Or(a.v, b.v); }
HWY_INLINE Uints operator^(Uints a, Uints b) { return hn::Xor(a.v, b.v); }
HWY_INLINE Uints operator<<(Uints a, int bits) { return hn::ShiftLeftSame(a.v, bits); }
HWY_INLINE Uints operator>>(Uints a, int bits) { return hn::ShiftRightSame(a.v, bits); }
HWY_INLINE Ints operator+(Ints a, Ints b) { return hn::Add(a.v, b.v); }
HWY_INLINE Ints operator-(Ints a, Ints b) { return hn::Sub(a.v, b.v); }
HWY_INLINE Ints operator&(Ints a, Ints b) { return hn::And(a.v, b.v); }
HWY_INLINE Ints operator-(Ints a) { return hn::Sub(hn::Zero(di), a.v); }
HWY_INLINE Ints operator>>(Ints a, int bits) { return hn::ShiftRightSame(a.v, bits); }

HWY_INLINE Bools operator<(Floats a, Floats b) { return {hn::Lt(a.v, b.v)}; }
HWY_INLINE Bools operator>(Floats a, Floats b) { return {hn::Lt(b.v, a.v)}; }
HWY_INLINE Bools operator<=(Floats a, Floats b) { return {hn::Le(a.v, b.v)}; }
HWY_INLINE Bools operator>=(Floats a, Floats b) { return {hn::Le(b.v, a.v)}; }
HWY_INLINE Bools operator==(Floats a, Floats b) { return {hn::Eq(a.v, b.v)}; }
HWY_INLINE Bools operator<(Ints a, Ints b) { return {hn::RebindMask(df, hn::Lt(a.v, b.v))}; }
HWY_INLINE Bools operator>=(Ints a, Ints b) {
  return {hn::RebindMask(df, hn::Not(hn::Lt(a.v, b.v)))};
}
HWY_INLINE Bools operator==(Ints a, Ints b) { return {hn::RebindMask(df, hn::Eq(a.v, b.v))}; }
HWY_INLINE Bools operator<(Uints a, Uints b) {
  return asint(a ^ 0x80000000u) < asint(b ^ 0x80000000u);
}
HWY_INLINE Bools operator>(Uints a, Uints b) { return b < a; }
HWY_INLINE Bools operator==(Uints a, Uints b) { return {hn::RebindMask(df, hn::Eq(a.v, b.v))}; }
HWY_INLINE Bools operator!=(Uints a, Uints b) { return {hn::Not((a == b).m)}; }
HWY_INLINE Bools operator!(Bools a) { return {hn::Not(a.m)}; }
HWY_INLINE Bools operator&&(Bools a, Bools b) { return {hn::And(a.m, b.m)}; }
HWY_INLINE Bools operator||(Bools a, Bools b) { return {hn::Or(a.m, b.m)}; }
HWY_INLINE Bools operator!=(Bools a, Bools b) { return {hn::Xor(a.m, b.m)}; }
HWY_INLINE Bools operator==(Bools a, Bools b) { return !(a != b); }

HWY_INLINE Floats Select(Bools c, Floats a, Floats b) { return hn::IfThenElse(c.m, a.v, b.v); }
HWY_INLINE Uints Select(Bools c, Uints a, Uints b) {
  return hn::IfThenElse(hn::RebindMask(du, c.m), a.v, b.v);
}
HWY_INLINE Ints Select(Bools c, Ints a, Ints b) {
  return hn::IfThenElse(hn::RebindMask(di, c.m), a.v, b.v);
}

HWY_INLINE Floats min(Floats a, Floats b) { return hn::Min(a.v, b.v); }
HWY_INLINE Floats max(Floats a, Floats b) { return hn::Max(a.v, b.v); }
HWY_INLINE Floats abs(Floats x) { return hn::Abs(x.v); }
HWY_INLINE Floats floor(Floats x) { return hn::Floor(x.v); }
HWY_INLINE Floats ceil(Floats x) { return hn::Ceil(x.v); }
HWY_INLINE Floats trunc(Floats x) { return hn::Trunc(x.v); }
HWY_INLINE Floats round(Floats x) { return hn::Round(x.v); }
HWY_INLINE Floats sqrt(Floats x) { return hn::Sqrt(x.v); }

// Not contracted, like all of this file.
HWY_INLINE Floats Keep(Floats x) { return x; }
HWY_INLINE Bools HasSign(Floats x) { return asint(x) < Ints(0); }
HWY_INLINE Bools AreNumbers(Floats a, Floats b) { return (a == a) && (b == b); }
HWY_INLINE Floats NumberOrNan(Floats a, Floats b, Floats number) {
  return Select(AreNumbers(a, b), number, asfloat(Uints(0x7FC00000u)));
}
// Equal numbers differ in the signs of zeros only.
HWY_INLINE Floats Min(Floats a, Floats b) {
  return NumberOrNan(a, b, Select(a == b, asfloat(asuint(a) | asuint(b)), min(a, b)));
}
HWY_INLINE Floats Max(Floats a, Floats b) {
  return NumberOrNan(a, b, Select(a == b, asfloat(asuint(a) & asuint(b)), max(a, b)));
}

// The text has the names that HLSL gives these types, and INLINE.
// NOLINTBEGIN
#define FLOATS Floats
#define UINTS Uints
#define INTS Ints
#define BOOLS Bools
#define INLINE HWY_INLINE
#include "shaders/include/functions.hlsli"
#undef FLOATS
#undef UINTS
#undef INTS
#undef BOOLS
#undef INLINE
#undef FLOAT_SIGN
#undef FLOAT_INFINITY
#undef INFINITE
#undef NOT_A_NUMBER
#undef HALF_PI
// NOLINTEND

HWY_INLINE Floats Cast(Floats x) { return x; }

#define OPMILL_INLINE HWY_INLINE
#include "kernels/operators/elementwise/element_wise_expression.h"
#undef OPMILL_INLINE

template <ElementWiseOp op, bool has_mode>
HWY_INLINE auto Apply(Floats a, Floats b, uint64_t p0, uint64_t p1) {
  const uint32_t bits0 = static_cast<uint32_t>(p0);
  const uint32_t bits1 = static_cast<uint32_t>(p1);
  if constexpr (has_mode) {
    return Expression<op, Floats, Uints>::Of(a, b, b, Uints(bits0), Uints(bits1));
  } else {
    return Expression<op, Floats, Floats>::Of(a, b, b, asfloat(Uints(bits0)),
                                              asfloat(Uints(bits1)));
  }
}

HWY_INLINE void Store(Floats x, float* to) { hn::StoreU(x.v, df, to); }
HWY_INLINE void Store(Bools x, uint32_t* to) {
  hn::StoreU(hn::IfThenElseZero(hn::RebindMask(du, x.m), hn::Set(du, 1u)), du, to);
}
HWY_INLINE void Store(Bools x, uint8_t* to) {
  const auto ones = hn::IfThenElseZero(hn::RebindMask(di, x.m), hn::Set(di, 1));
  hn::StoreU(hn::DemoteTo(hn::Rebind<uint8_t, decltype(di)>(), ones),
             hn::Rebind<uint8_t, decltype(di)>(), to);
}

// Calls compute(operand 0, operand 1, result) with pointers to whole vectors; the last one is a
// copy.
template <typename In, typename Out, typename Compute>
HWY_INLINE void ForEachVector(const In* a, const In* b, Out* result, size_t count,
                              const Compute& compute) {
  const size_t n = hn::Lanes(df);
  size_t i = 0;
  for (; i + n <= count; i += n) compute(a + i, b + i, result + i);
  if (i == count) return;
  HWY_ALIGN In rest_a[hn::MaxLanes(df)] = {};
  HWY_ALIGN In rest_b[hn::MaxLanes(df)] = {};
  HWY_ALIGN Out rest[hn::MaxLanes(df)];
  std::memcpy(rest_a, a + i, (count - i) * sizeof(In));
  std::memcpy(rest_b, b + i, (count - i) * sizeof(In));
  compute(rest_a, rest_b, rest);
  std::memcpy(result + i, rest, (count - i) * sizeof(Out));
}

template <ElementWiseOp op, bool has_mode, typename Out>
HWY_NOINLINE void FloatMap(const MapArguments& arguments) {
  const auto* a = static_cast<const float*>(arguments.operands[0]);
  const auto* b = static_cast<const float*>(arguments.operands[1]);
  const uint64_t p0 = arguments.parameters[0];
  const uint64_t p1 = arguments.parameters[1];
  ForEachVector(a, b == nullptr ? a : b, static_cast<Out*>(arguments.result), arguments.count,
                [=](const float* x, const float* y, Out* to) HWY_ATTR {
                  Store(Apply<op, has_mode>(hn::LoadU(df, x), hn::LoadU(df, y), p0, p1), to);
                });
}

MapKernel FindFloatMap(ElementWiseOp op, DataType type) {
  switch (op) {
#define OPMILL_ELEMENT_WISE(inputs, Name, name, alias, summary, support, result, attributes, ...) \
  case ElementWiseOp::k##Name:                                                                    \
    if constexpr (support[0].types.Contains(DataType::kFloat32)) {                                \
      constexpr ElementWiseOp kOp = ElementWiseOp::k##Name;                                       \
      if constexpr (ElementWiseResult::result == ElementWiseResult::kTruth) {                     \
        if (type == DataType::kUint32) return &FloatMap<kOp, HasMode(attributes), uint32_t>;      \
        return &FloatMap<kOp, HasMode(attributes), uint8_t>;                                      \
      } else if constexpr (ElementWiseResult::result == ElementWiseResult::kSame) {               \
        return &FloatMap<kOp, HasMode(attributes), float>;                                        \
      }                                                                                           \
    }                                                                                             \
    return nullptr;
#include "kernels/operators/elementwise/element_wise_rows.inc"
#undef OPMILL_ELEMENT_WISE
  }
  return nullptr;
}

void ToFloatArray(const uint16_t* halves, float* floats, size_t count) {
  ForEachVector(halves, halves, floats, count,
                [](const uint16_t* x, const uint16_t*, float* to) HWY_ATTR {
                  const auto bits = hn::LoadU(hn::Rebind<uint16_t, decltype(du)>(), x);
                  Store(FloatOfHalf(hn::PromoteTo(du, bits)), to);
                });
}

void ToHalfArray(const float* floats, uint16_t* halves, size_t count) {
  ForEachVector(floats, floats, halves, count,
                [](const float* x, const float*, uint16_t* to) HWY_ATTR {
                  const auto bits = hn::BitCast(di, HalfOfFloat(hn::LoadU(df, x)).v);
                  hn::StoreU(hn::DemoteTo(hn::Rebind<uint16_t, decltype(di)>(), bits),
                             hn::Rebind<uint16_t, decltype(di)>(), to);
                });
}

// The operations that the accumulator machine has: short ones, whose code does not need registers
// beside the eight of the value.
// clang-format off
#define OPMILL_FUSED(DO)                                                                  \
  DO(Add) DO(Subtract) DO(Multiply) DO(Divide) DO(Max) DO(Min) DO(Mean)                   \
  DO(DifferenceSquare) DO(ParameterizedRelu)
#define OPMILL_FUSED_UNARY(DO)                                                            \
  DO(Abs) DO(Negate) DO(Sqrt) DO(Recip) DO(Relu) DO(LeakyRelu) DO(Linear) DO(HardSigmoid) \
  DO(HardSwish) DO(Clip) DO(Threshold) DO(ThresholdedRelu)
// clang-format on

bool HasFused(ElementWiseOp op) {
  switch (op) {
#define OPMILL_CASE(Name) case ElementWiseOp::k##Name:
    OPMILL_FUSED(OPMILL_CASE)
    OPMILL_FUSED_UNARY(OPMILL_CASE)
#undef OPMILL_CASE
    return true;
    default:
      return false;
  }
}

// Eight vectors, in registers: an array would be in memory.
#define OPMILL_EACH(f) f(v0, 0) f(v1, 1) f(v2, 2) f(v3, 3) f(v4, 4) f(v5, 5) f(v6, 6) f(v7, 7)

// Of these the first kVectors.
template <size_t kVectors>
HWY_INLINE void FusedBlockOf(const FusedStep* steps, size_t step_count, const float* const* inputs,
                             size_t first, float* result) {
  const size_t n = hn::Lanes(df);
#define OPMILL_LOAD(v, i) \
  Floats v = i < kVectors ? hn::LoadU(df, inputs[first] + i * n) : hn::Zero(df);
  OPMILL_EACH(OPMILL_LOAD)
  for (const FusedStep* step = steps; step != steps + step_count; ++step) {
    const float* from = inputs[step->input];
    const uint64_t p0 = std::bit_cast<uint32_t>(step->parameters[0]);
    const uint64_t p1 = std::bit_cast<uint32_t>(step->parameters[1]);
    switch (step->op) {
#define OPMILL_VALUE_INPUT(v, i) \
  if constexpr (i < kVectors) v = Apply<kOp, false>(v, hn::LoadU(df, from + i * n), p0, p1);
#define OPMILL_INPUT_VALUE(v, i) \
  if constexpr (i < kVectors) v = Apply<kOp, false>(hn::LoadU(df, from + i * n), v, p0, p1);
#define OPMILL_VALUE_VALUE(v, i) \
  if constexpr (i < kVectors) v = Apply<kOp, false>(v, v, p0, p1);
#define OPMILL_CASE(Name)                                            \
  case ElementWiseOp::k##Name: {                                     \
    constexpr ElementWiseOp kOp = ElementWiseOp::k##Name;            \
    if (step->operands == FusedStep::Operands::kValueInput) {        \
      OPMILL_EACH(OPMILL_VALUE_INPUT)                                \
    } else if (step->operands == FusedStep::Operands::kInputValue) { \
      OPMILL_EACH(OPMILL_INPUT_VALUE)                                \
    } else {                                                         \
      OPMILL_EACH(OPMILL_VALUE_VALUE)                                \
    }                                                                \
    continue;                                                        \
  }
      OPMILL_FUSED(OPMILL_CASE)
#undef OPMILL_CASE
#define OPMILL_CASE(Name)                                 \
  case ElementWiseOp::k##Name: {                          \
    constexpr ElementWiseOp kOp = ElementWiseOp::k##Name; \
    OPMILL_EACH(OPMILL_VALUE_VALUE)                       \
    continue;                                             \
  }
      OPMILL_FUSED_UNARY(OPMILL_CASE)
#undef OPMILL_CASE
      default:
        continue;
    }
  }
#define OPMILL_STORE(value, i) \
  if constexpr (i < kVectors) hn::StoreU(value.v, df, result + i * n);
  OPMILL_EACH(OPMILL_STORE)
}

// Of `count` elements, at most kVectors vectors, through memory of whole ones.
template <size_t kVectors>
void FusedRest(const FusedStep* steps, size_t step_count, const FusedInput* inputs,
               const float** at, size_t input_count, size_t first, float* result, size_t count) {
  const size_t whole = kVectors * hn::Lanes(df);
  HWY_ALIGN float rest[8][kVectors * hn::MaxLanes(df)];
  HWY_ALIGN float rest_result[kVectors * hn::MaxLanes(df)];
  for (size_t i = 0; i < input_count; ++i) {
    if (inputs[i].step == 0) continue;
    std::memcpy(rest[i], at[i], count * sizeof(float));
    std::memset(rest[i] + count, 0, (whole - count) * sizeof(float));
    at[i] = rest[i];
  }
  FusedBlockOf<kVectors>(steps, step_count, at, first, rest_result);
  std::memcpy(result, rest_result, count * sizeof(float));
}

void Fused(const FusedStep* steps, size_t step_count, const FusedInput* inputs, size_t input_count,
           size_t first, float* result, size_t count) {
  constexpr size_t kFew = 2;  // vectors of short rows
  const size_t n = hn::Lanes(df);
  const size_t block = 8 * n;
  const size_t vectors = count <= kFew * n ? kFew : 8;
  const float* at[8] = {};
  HWY_ALIGN float repeated[8][8 * hn::MaxLanes(df)];
  for (size_t i = 0; i < input_count; ++i) {
    at[i] = inputs[i].elements;
    if (inputs[i].step != 0) continue;
    const auto element = hn::Set(df, *at[i]);
    for (size_t v = 0; v < vectors; ++v) hn::Store(element, df, repeated[i] + v * n);
    at[i] = repeated[i];
  }
  size_t done = 0;
  for (; done + block <= count; done += block) {
    FusedBlockOf<8>(steps, step_count, at, first, result + done);
    for (size_t i = 0; i < input_count; ++i) at[i] += inputs[i].step * block;
  }
  if (done == count) return;
  const auto rest = count - done <= kFew * n ? &FusedRest<kFew> : &FusedRest<8>;
  rest(steps, step_count, inputs, at, input_count, first, result + done, count - done);
}

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmill {

HWY_EXPORT(FindFloatMap);
HWY_EXPORT(ToFloatArray);
HWY_EXPORT(ToHalfArray);
HWY_EXPORT(HasFused);
HWY_EXPORT(Fused);

MapKernel FloatMapKernel(ElementWiseOp op, DataType result) {
  return HWY_DYNAMIC_DISPATCH(FindFloatMap)(op, result);
}
void FloatsFromHalves(const uint16_t* halves, float* floats, size_t count) {
  HWY_DYNAMIC_DISPATCH(ToFloatArray)(halves, floats, count);
}
void HalvesFromFloats(const float* floats, uint16_t* halves, size_t count) {
  HWY_DYNAMIC_DISPATCH(ToHalfArray)(floats, halves, count);
}
bool CanFuse(ElementWiseOp op) { return HWY_DYNAMIC_DISPATCH(HasFused)(op); }
void RunFused(absl::Span<const FusedStep> steps, absl::Span<const FusedInput> inputs, size_t first,
              float* result, size_t count) {
  HWY_DYNAMIC_DISPATCH(Fused)
  (steps.data(), steps.size(), inputs.data(), inputs.size(), first, result, count);
}

}  // namespace opmill
#endif  // HWY_ONCE
