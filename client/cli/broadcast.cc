#include "client/cli/broadcast.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/text_table.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/broadcast.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

using Sizes = std::vector<uint32_t>;

// The size of the i-th dimension from the last; 1 beyond the first.
uint32_t SizeFromLast(const Sizes& sizes, size_t i) {
  return i < sizes.size() ? sizes[sizes.size() - 1 - i] : 1;
}

bool CanBroadcast(const Sizes& a, const Sizes& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const uint32_t from_a = SizeFromLast(a, i);
    const uint32_t from_b = SizeFromLast(b, i);
    if (from_a != from_b && from_a != 1 && from_b != 1) return false;
  }
  return true;
}

std::string TypeName(const TensorDesc& desc) {
  return absl::AsciiStrToLower(ToString(desc.data_type));
}

absl::Status CheckPair(absl::string_view name_a, const TensorDesc& a, absl::string_view name_b,
                       const TensorDesc& b, bool same_type) {
  if (same_type && a.data_type != b.data_type) {
    return absl::InvalidArgumentError(absl::StrCat(
        name_a, " is ", TypeName(a), " and ", name_b, " is ", TypeName(b),
        ", but the inputs must have one type; convert them with --cast ", TypeName(a), "."));
  }
  if (CanBroadcast(a.sizes, b.sizes)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "The shapes ", ShapeText(a.sizes), " of ", name_a, " and ", ShapeText(b.sizes), " of ",
      name_b, " cannot be broadcast: from the last dimension on, sizes must be equal or 1."));
}

}  // namespace

absl::Status Broadcast(const OperatorSchema& schema, absl::Span<const std::string> names,
                       std::vector<TensorDesc>& inputs) {
  if (schema.family != OperatorFamily::kElementWise) return absl::OkStatus();
  Sizes common;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool same_type = schema.inputs[j].type == schema.inputs[i].type;
      RETURN_IF_ERROR(CheckPair(names[j], inputs[j], names[i], inputs[i], same_type));
    }
    Sizes wider(std::max(common.size(), inputs[i].sizes.size()));
    for (size_t k = 0; k < wider.size(); ++k) {
      // The sizes are equal or 1.
      wider[wider.size() - 1 - k] =
          std::max(SizeFromLast(common, k), SizeFromLast(inputs[i].sizes, k));
    }
    common = std::move(wider);
  }
  for (TensorDesc& input : inputs) BroadcastTo(common, input);
  return absl::OkStatus();
}

}  // namespace opmill
