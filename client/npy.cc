#include "client/npy.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "client/names.h"

namespace opmill {

v1::DataType DataTypeOf(const NpyDtype& dtype) {
  return IsOfOperators(dtype) ? *ParseDataType(NameOf(dtype)) : v1::DATA_TYPE_UNSPECIFIED;
}

NpyDtype DtypeOf(v1::DataType type) {
  const std::string name = NameOf(type);  // float32, int8, uint64, ...
  return {name[0], static_cast<uint8_t>(ElementBytes(type))};
}

absl::StatusOr<v1::TensorDesc> ToTensorDesc(const NpyHeader& header) {
  v1::TensorDesc desc;
  desc.set_data_type(DataTypeOf(header.dtype));
  for (const uint32_t size : header.sizes) desc.add_sizes(size);
  if (!header.fortran_order || header.sizes.size() == 1) return desc;
  uint64_t stride = 1;
  for (const uint32_t size : header.sizes) {
    if (stride > std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("The array is in Fortran order, and its stride of ", stride,
                       " elements exceeds 4294967295; save it with "
                       "numpy.ascontiguousarray(x)."));
    }
    desc.add_strides(static_cast<uint32_t>(stride));
    stride *= size;
  }
  return desc;
}

std::string MakeNpyHeader(v1::DataType data_type, absl::Span<const uint32_t> sizes, bool is_bool) {
  return MakeNpyHeader(is_bool ? NpyDtype{'b', 1} : DtypeOf(data_type), sizes);
}

}  // namespace opmill
