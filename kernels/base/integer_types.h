// From enumerators of element types to the integer types of C++.
#ifndef OPMILL_KERNELS_BASE_INTEGER_TYPES_H_
#define OPMILL_KERNELS_BASE_INTEGER_TYPES_H_

#include <cstdint>

namespace opmill {

// Calls visit(T()) for the integer type that the enumerator names; for uint8_t if it names none.
// Enumerations of element types have the same names: kInt8, and so on.
template <typename Type, typename Visit>
auto VisitInteger(Type type, const Visit& visit) {
  switch (type) {
    case Type::kInt8:
      return visit(int8_t());
    case Type::kInt16:
      return visit(int16_t());
    case Type::kInt32:
      return visit(int32_t());
    case Type::kInt64:
      return visit(int64_t());
    case Type::kUint16:
      return visit(uint16_t());
    case Type::kUint32:
      return visit(uint32_t());
    case Type::kUint64:
      return visit(uint64_t());
    default:
      return visit(uint8_t());
  }
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_INTEGER_TYPES_H_
