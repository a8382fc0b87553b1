#include "kernels/descriptor/tensor.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

constexpr uint64_t kMaxUint64 = std::numeric_limits<uint64_t>::max();

std::optional<uint64_t> CheckedAdd(uint64_t a, uint64_t b) {
  if (a > kMaxUint64 - b) return std::nullopt;
  return a + b;
}

std::optional<uint64_t> CheckedMultiply(uint64_t a, uint64_t b) {
  if (b != 0 && a > kMaxUint64 / b) return std::nullopt;
  return a * b;
}

// nullopt if the bytes do not fit into 64 bits.
std::optional<uint64_t> CheckedSpannedBytes(const TensorDesc& desc) {
  if (desc.strides.empty()) return ElementCount(desc) * ElementBytes(desc.data_type);
  uint64_t last_index = 0;
  for (size_t i = 0; i < desc.sizes.size(); ++i) {
    // 32 x 32 bits: the product itself cannot overflow.
    const std::optional<uint64_t> sum =
        CheckedAdd(last_index, uint64_t{desc.sizes[i] - 1} * desc.strides[i]);
    if (!sum.has_value()) return std::nullopt;
    last_index = *sum;
  }
  const std::optional<uint64_t> elements = CheckedAdd(last_index, 1);
  if (!elements.has_value()) return std::nullopt;
  return CheckedMultiply(*elements, ElementBytes(desc.data_type));
}

std::optional<uint64_t> CheckedRequiredBytes(const TensorDesc& desc) {
  const std::optional<uint64_t> bytes = CheckedSpannedBytes(desc);
  if (!bytes.has_value()) return std::nullopt;
  const std::optional<uint64_t> padded = CheckedAdd(*bytes, 3);
  if (!padded.has_value()) return std::nullopt;
  return *padded / 4 * 4;
}

absl::Status CheckDataType(DataType type, absl::string_view field) {
  if (ElementBytes(type) != 0) return absl::OkStatus();
  const std::string path = absl::StrCat(field, ".data_type");
  if (type == DataType::kFloat64) {
    return InvalidField(path, absl::StrCat(path, " FLOAT64 is taken by no operator."));
  }
  return InvalidField(path, absl::StrCat(path, " (", static_cast<uint32_t>(type),
                                         ") is not a data type that DirectML names."));
}

// Two coordinates name the same element exactly when some step of at most size - 1 along each
// dimension, not all zero, moves by 0 in sum. The search walks the dimensions from the largest
// stride down and keeps only the steps that the smaller dimensions together can undo.
class OverlapSearch {
 public:
  // `dims` are {stride, size}, ascending, strides at least 1 and sizes at least 2.
  explicit OverlapSearch(absl::Span<const std::pair<uint64_t, uint64_t>> dims) : dims_(dims) {
    uint64_t reach = 0;
    uint64_t divisor = 0;
    for (const auto& [stride, size] : dims) {
      crosses_ = crosses_ || stride <= reach;
      reach_below_.push_back(reach);
      divisor_below_.push_back(divisor);
      reach += (size - 1) * stride;
      divisor = std::gcd(divisor, stride);
    }
    total_reach_ = reach;
  }

  Overlap Run() {
    if (!crosses_) return Overlap::kNone;
    // Twice the reach must fit into the signed numbers below; no memory is that large.
    if (total_reach_ > kMaxUint64 / 4) return Overlap::kUndecided;
    return Search(dims_.size(), 0, false);
  }

 private:
  // The limit of steps before the search gives up, after some milliseconds.
  static constexpr uint32_t kMaxSteps = 1u << 18;

  // Returns whether dimensions [0, count) can move by -`moved`. `nonzero`: a larger dimension has
  // stepped.
  Overlap Search(size_t count, int64_t moved, bool nonzero) {
    if (count == 0) return nonzero && moved == 0 ? Overlap::kSome : Overlap::kNone;
    const auto [stride, size] = dims_[count - 1];
    const int64_t signed_stride = static_cast<int64_t>(stride);
    const int64_t reach = static_cast<int64_t>(reach_below_[count - 1]);
    const int64_t divisor = static_cast<int64_t>(divisor_below_[count - 1]);
    const int64_t limit = static_cast<int64_t>(size - 1);
    // |moved + step * stride| <= reach. If no larger dimension has stepped, negative steps need not
    // be tried.
    int64_t first = std::max(-limit, CeilDivide(-reach - moved, signed_stride));
    const int64_t last = std::min(limit, FloorDivide(reach - moved, signed_stride));
    if (!nonzero) first = std::max<int64_t>(first, 0);
    for (int64_t step = first; step <= last; ++step) {
      if (++steps_ > kMaxSteps) return Overlap::kUndecided;
      const int64_t rest = moved + step * signed_stride;
      if (divisor == 0 ? rest != 0 : rest % divisor != 0) continue;
      const Overlap below = Search(count - 1, rest, nonzero || step != 0);
      if (below != Overlap::kNone) return below;
    }
    return Overlap::kNone;
  }

  static int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
  static int64_t CeilDivide(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

  absl::Span<const std::pair<uint64_t, uint64_t>> dims_;
  std::vector<uint64_t> reach_below_;    // sum of (size - 1) * stride of smaller dimensions
  std::vector<uint64_t> divisor_below_;  // their greatest common divisor, 0 for none
  bool crosses_ = false;                 // a stride is within the reach of the smaller ones
  uint64_t total_reach_ = 0;
  uint32_t steps_ = 0;
};

// "[2,3]"
void AppendList(absl::Span<const uint32_t> values, std::string& text) {
  text.push_back('[');
  for (size_t i = 0; i < values.size(); ++i) absl::StrAppend(&text, i == 0 ? "" : ",", values[i]);
  text.push_back(']');
}

}  // namespace

uint32_t ElementBytes(DataType type) {
  switch (type) {
    case DataType::kInt8:
    case DataType::kUint8:
      return 1;
    case DataType::kFloat16:
    case DataType::kInt16:
    case DataType::kUint16:
      return 2;
    case DataType::kFloat32:
    case DataType::kInt32:
    case DataType::kUint32:
      return 4;
    case DataType::kInt64:
    case DataType::kUint64:
      return 8;
    case DataType::kUnknown:
    case DataType::kFloat64:
      break;
  }
  return 0;
}

bool IsFloat(DataType type) { return type == DataType::kFloat32 || type == DataType::kFloat16; }

bool IsSigned(DataType type) {
  switch (type) {
    case DataType::kFloat32:
    case DataType::kFloat16:
    case DataType::kInt64:
    case DataType::kInt32:
    case DataType::kInt16:
    case DataType::kInt8:
      return true;
    default:
      return false;
  }
}

absl::string_view ToString(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return "FLOAT32";
    case DataType::kFloat16:
      return "FLOAT16";
    case DataType::kUint32:
      return "UINT32";
    case DataType::kUint16:
      return "UINT16";
    case DataType::kUint8:
      return "UINT8";
    case DataType::kInt32:
      return "INT32";
    case DataType::kInt16:
      return "INT16";
    case DataType::kInt8:
      return "INT8";
    case DataType::kFloat64:
      return "FLOAT64";
    case DataType::kUint64:
      return "UINT64";
    case DataType::kInt64:
      return "INT64";
    case DataType::kUnknown:
      break;
  }
  return "UNKNOWN";
}

absl::Status CheckTensor(const TensorDesc& desc, absl::string_view field) {
  RETURN_IF_ERROR(CheckDataType(desc.data_type, field));
  const size_t rank = desc.sizes.size();
  if (rank < 1 || rank > kMaxRank) {
    const std::string path = absl::StrCat(field, ".sizes");
    return InvalidField(
        path, absl::StrCat(path, " has ", rank, " dimensions; 1 to ", kMaxRank, " are allowed."));
  }
  uint64_t elements = 1;
  for (size_t i = 0; i < rank; ++i) {
    if (desc.sizes[i] == 0) {
      const std::string path = absl::StrCat(field, ".sizes[", i, "]");
      return InvalidField(path, absl::StrCat(path, " (0) is below 1."));
    }
    // Stays below 2^64: both factors are below 2^32.
    elements *= desc.sizes[i];
    if (elements > kMaxElements) {
      const std::string path = absl::StrCat(field, ".sizes");
      return InvalidField(
          path, absl::StrCat(path, " [", absl::StrJoin(desc.sizes, ","),
                             "] name more elements than the limit (", kMaxElements, ")."));
    }
  }
  if (desc.strides.empty()) return absl::OkStatus();
  const std::string path = absl::StrCat(field, ".strides");
  if (desc.strides.size() != rank) {
    return InvalidField(path, absl::StrCat(path, " has ", desc.strides.size(), " entries, but ",
                                           field, ".sizes has ", rank, "."));
  }
  if (!CheckedRequiredBytes(desc).has_value()) {
    return InvalidField(path, absl::StrCat(path, " [", absl::StrJoin(desc.strides, ","),
                                           "] with sizes [", absl::StrJoin(desc.sizes, ","),
                                           "] reach further than 64 bits can count in bytes."));
  }
  return absl::OkStatus();
}

uint64_t ElementCount(const TensorDesc& desc) {
  uint64_t count = 1;
  for (const uint32_t size : desc.sizes) count *= size;
  return count;
}

std::vector<uint32_t> ReducedSizes(std::vector<uint32_t> sizes, const std::vector<uint32_t>& axes) {
  for (const uint32_t axis : axes) sizes[axis] = 1;
  return sizes;
}

std::vector<uint32_t> PackedStrides(const std::vector<uint32_t>& sizes) {
  std::vector<uint32_t> strides(sizes.size());
  uint32_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  return strides;
}

std::vector<uint32_t> EffectiveStrides(const TensorDesc& desc) {
  return desc.strides.empty() ? PackedStrides(desc.sizes) : desc.strides;
}

bool IsPacked(const TensorDesc& desc) {
  if (desc.strides.empty()) return true;
  const std::vector<uint32_t> packed = PackedStrides(desc.sizes);
  for (size_t i = 0; i < desc.sizes.size(); ++i) {
    // The stride of a dimension of size 1 has no effect.
    if (desc.sizes[i] > 1 && desc.strides[i] != packed[i]) return false;
  }
  return true;
}

Overlap FindOverlap(const TensorDesc& desc) {
  const std::vector<uint32_t> strides = EffectiveStrides(desc);
  std::vector<std::pair<uint64_t, uint64_t>> dims;
  for (size_t i = 0; i < desc.sizes.size(); ++i) {
    if (desc.sizes[i] == 1) continue;
    if (strides[i] == 0) return Overlap::kSome;
    dims.emplace_back(strides[i], desc.sizes[i]);
  }
  std::sort(dims.begin(), dims.end());
  return OverlapSearch(dims).Run();
}

bool HasOverlap(const TensorDesc& desc) { return FindOverlap(desc) != Overlap::kNone; }

uint64_t SpannedBytes(const TensorDesc& desc) { return CheckedSpannedBytes(desc).value_or(0); }

uint64_t RequiredBytes(const TensorDesc& desc) { return CheckedRequiredBytes(desc).value_or(0); }

void AppendText(const TensorDesc& desc, std::string& text) {
  absl::StrAppend(&text, ToString(desc.data_type));
  AppendList(desc.sizes, text);
  if (desc.strides.empty()) return;
  absl::StrAppend(&text, " strides ");
  AppendList(desc.strides, text);
}

std::string ToString(const TensorDesc& desc) {
  std::string text;
  AppendText(desc, text);
  return text;
}

}  // namespace opmill
