// The expressions of element_wise_rows.inc as C++. Included where their vocabulary is in scope,
// which may be once per instruction set, so that it has no include guard of its own.
//
// Evaluate<kOp>(operands..., parameters) with T the type of a value and P of a parameter that
// selects a mode. OPMILL_INLINE: attributes of the functions.

template <ElementWiseOp op, typename T, typename P>
struct Expression;

#define OPMILL_OPERANDS_kUnary T x, T, T
#define OPMILL_OPERANDS_kBinary T a, T b, T
#define OPMILL_OPERANDS_kIf T c_, T a, T b
#define OPMILL_ELEMENT_WISE(inputs, Name, name, alias, summary, support, result, attributes, ulps, \
                            ...)                                                                   \
  template <typename T, typename P>                                                                \
  struct Expression<ElementWiseOp::k##Name, T, P> {                                                \
    static OPMILL_INLINE auto Of(OPMILL_OPERANDS_##inputs, [[maybe_unused]] P p0,                  \
                                 [[maybe_unused]] P p1) {                                          \
      return __VA_ARGS__;                                                                          \
    }                                                                                              \
  };
#include "kernels/operators/elementwise/element_wise_rows.inc"
#undef OPMILL_ELEMENT_WISE
#undef OPMILL_OPERANDS_kUnary
#undef OPMILL_OPERANDS_kBinary
#undef OPMILL_OPERANDS_kIf
