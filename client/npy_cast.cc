#include "client/npy_cast.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/names.h"
#include "kernels/base/half.h"

namespace opmill {
namespace {

struct Half {
  uint16_t bits;
};
struct Bool {
  uint8_t byte;
};

template <typename T>
constexpr bool kIsFloat = std::is_floating_point_v<T> || std::is_same_v<T, Half>;

template <typename T>
T Load(const std::byte* from, bool is_big_endian) {
  std::byte bytes[sizeof(T)];
  std::memcpy(bytes, from, sizeof(T));
  if (is_big_endian) std::reverse(std::begin(bytes), std::end(bytes));
  return std::bit_cast<T>(bytes);
}

// Converts to a type that holds all values exactly.
double Widen(double value) { return value; }
double Widen(float value) { return value; }
double Widen(Half value) { return HalfToFloat(value.bits); }
uint64_t Widen(Bool value) { return value.byte != 0 ? 1 : 0; }
template <typename Integer>
auto Widen(Integer value) {
  using Wide = std::conditional_t<std::is_signed_v<Integer>, int64_t, uint64_t>;
  return static_cast<Wide>(value);
}

// Returns whether `wide` fits, and sets `to`.
template <typename To, typename Wide>
bool Convert(Wide wide, To& to) {
  if constexpr (std::is_same_v<To, Half>) {
    // Integers of more than 53 bits, which double rounds, overflow in any case.
    to.bits = FloatToHalf(static_cast<double>(wide));
    constexpr int kInfinity = 0x7C00;
    return (to.bits & 0x7FFF) != kInfinity || std::isinf(static_cast<double>(wide));
  } else if constexpr (std::is_floating_point_v<To>) {
    to = static_cast<To>(wide);
    return !std::isinf(to) || std::isinf(static_cast<double>(wide));
  } else {
    to = static_cast<To>(wide);
    return std::in_range<To>(wide);
  }
}

std::string TextOf(double value) { return absl::StrCat(value); }
std::string TextOf(int64_t value) { return absl::StrCat(value); }
std::string TextOf(uint64_t value) { return absl::StrCat(value); }

// The indices of an element by its position in the file: "[2, 0]".
std::string PlaceOf(const NpyHeader& header, size_t index) {
  std::vector<size_t> place(header.sizes.size());
  for (size_t i = 0; i < place.size(); ++i) {
    const size_t axis = header.fortran_order ? i : place.size() - 1 - i;
    place[axis] = index % header.sizes[axis];
    index /= header.sizes[axis];
  }
  return absl::StrCat("[", absl::StrJoin(place, ", "), "]");
}

template <typename From, typename To>
absl::Status Cast(const NpyHeader& header, absl::Span<const std::byte> elements, v1::DataType type,
                  std::byte* out) {
  const size_t count = elements.size() / sizeof(From);
  for (size_t i = 0; i < count; ++i) {
    const auto wide =
        Widen(Load<From>(elements.data() + i * sizeof(From), header.dtype.is_big_endian));
    To to;
    if (!Convert(wide, to)) {
      return absl::InvalidArgumentError(absl::StrCat("The array's value ", TextOf(wide), " at ",
                                                     PlaceOf(header, i), " does not fit into ",
                                                     NameOf(type), "."));
    }
    std::memcpy(out + i * sizeof(To), &to, sizeof(To));
  }
  return absl::OkStatus();
}

// Calls `with` with a value of the dtype's C++ type.
template <typename With>
absl::Status WithDtype(const NpyDtype& dtype, With with) {
  switch (dtype.kind) {
    case 'f':
      return dtype.bytes == 8 ? with(double{}) : dtype.bytes == 4 ? with(float{}) : with(Half{});
    case 'b':
      return with(Bool{});
    case 'i':
      if (dtype.bytes == 8) return with(int64_t{});
      if (dtype.bytes == 4) return with(int32_t{});
      return dtype.bytes == 2 ? with(int16_t{}) : with(int8_t{});
    default:
      if (dtype.bytes == 8) return with(uint64_t{});
      if (dtype.bytes == 4) return with(uint32_t{});
      return dtype.bytes == 2 ? with(uint16_t{}) : with(uint8_t{});
  }
}

}  // namespace

absl::Status CheckCast(const NpyDtype& from, v1::DataType to) {
  const char to_kind = NameOf(to)[0];
  if (from.kind != 'f' || to_kind == 'f') return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "The array's type is float", 8 * from.bytes, ", but floats are not cast to integers (",
      NameOf(to), "), because that would lose the fraction; cast to float32 or float16."));
}

absl::Status CastElements(const NpyHeader& header, absl::Span<const std::byte> elements,
                          v1::DataType to, std::byte* out) {
  absl::Status possible = CheckCast(header.dtype, to);
  if (!possible.ok()) return possible;
  return WithDtype(header.dtype, [&](auto from_value) {
    using From = decltype(from_value);
    return WithDtype(DtypeOf(to), [&](auto to_value) {
      using To = decltype(to_value);
      if constexpr (std::is_same_v<To, Bool> || std::is_same_v<To, double> ||
                    (kIsFloat<From> && !kIsFloat<To>)) {
        return absl::InternalError(
            "No such cast.");  // excluded by CheckCast and the types of operators
      } else {
        return Cast<From, To>(header, elements, to, out);
      }
    });
  });
}

}  // namespace opmill
