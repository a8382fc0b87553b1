#include "client/model_call.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/names.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/nearest.h"

namespace opmill {
namespace {

constexpr int64_t kAnySize = -1;

std::vector<std::string> InputNames(const v1::ModelInfo& model) {
  std::vector<std::string> names;
  for (const v1::ModelTensor& input : model.inputs()) names.push_back(input.name());
  return names;
}

template <typename Sizes>
std::string SizesText(const Sizes& sizes) {
  return absl::StrCat("[", absl::StrJoin(sizes, ","), "]");
}

absl::Status CheckTensor(const v1::ModelInfo& model, const v1::ModelTensor& expected,
                         const v1::TensorDesc& desc) {
  const std::string subject =
      absl::StrCat("The input ", Excerpt(expected.name()), " of ", model.name());
  if (desc.data_type() != expected.data_type()) {
    return absl::InvalidArgumentError(
        absl::StrCat(subject, " is ", TypeName(expected), ", not ", NameOf(desc.data_type()), "."));
  }
  const bool fits = absl::c_equal(expected.sizes(), desc.sizes(), [](int64_t takes, uint32_t size) {
    return takes == kAnySize || takes == int64_t{size};
  });
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(subject, " has the shape ",
                                                 SizesText(expected.sizes()), ", not ",
                                                 SizesText(desc.sizes()), "."));
}

// The elements of a tensor with strides, in row-major order.
InputBytes Pack(const v1::TensorDesc& desc, const InputBytes& from) {
  const size_t element = ElementBytes(desc.data_type());
  size_t count = 1;
  for (const uint32_t size : desc.sizes()) count *= size;
  auto packed = std::make_shared<std::vector<std::byte>>(count * element);
  std::vector<uint32_t> position(static_cast<size_t>(desc.sizes_size()));
  uint64_t source = 0;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(packed->data() + i * element, from.data + source * element, element);
    for (size_t d = position.size(); d-- > 0;) {
      const uint32_t size = desc.sizes(static_cast<int>(d));
      const uint64_t stride = desc.strides(static_cast<int>(d));
      source += stride;
      if (++position[d] < size) break;
      position[d] = 0;
      source -= stride * size;
    }
  }
  return {packed->data(), packed->size(), packed};
}

}  // namespace

std::string TypeName(const v1::ModelTensor& tensor) {
  return tensor.is_bool() ? "bool" : NameOf(tensor.data_type());
}

std::string ToText(const v1::ModelTensor& tensor) {
  return absl::StrCat(tensor.name(), " ", TypeName(tensor), SizesText(tensor.sizes()));
}

absl::Status CheckInputNames(const v1::ModelInfo& model, const std::vector<std::string>& names) {
  const std::vector<std::string> known = InputNames(model);
  const std::string takes = absl::StrCat(model.name(), " takes ", absl::StrJoin(known, ", "), ".");
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (!absl::c_linear_search(known, *name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", Excerpt(*name), "\" is no input: ", takes, DidYouMean(*name, known)));
    }
    if (std::find(names.begin(), name, *name) != name) {
      return absl::InvalidArgumentError(
          absl::StrCat("The input ", Excerpt(*name), " is given twice."));
    }
  }
  for (const std::string& name : known) {
    if (absl::c_linear_search(names, name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("The input ", Excerpt(name), " is missing: ", takes));
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelCall> DescribeCall(const v1::ModelInfo& model, const std::string& version,
                                       std::vector<NamedInput> inputs) {
  std::vector<std::string> names;
  for (const NamedInput& input : inputs) names.push_back(input.name);
  RETURN_IF_ERROR(CheckInputNames(model, names));
  ModelCall call;
  call.desc.set_name(model.name());
  call.desc.set_version(version);
  for (const bool has_value : {false, true}) {
    for (const v1::ModelTensor& expected : model.inputs()) {
      if (expected.needs_value() != has_value) continue;
      NamedInput& input = *absl::c_find_if(
          inputs, [&](const NamedInput& each) { return each.name == expected.name(); });
      if (expected.sizes().empty() && input.desc.sizes_size() == 1 && input.desc.sizes(0) == 1) {
        input.desc.clear_sizes();
        input.desc.clear_strides();
      }
      RETURN_IF_ERROR(CheckTensor(model, expected, input.desc));
      if (input.desc.strides_size() > 0) {
        input.bytes = Pack(input.desc, input.bytes);
        input.desc.clear_strides();
      }
      v1::ModelInput& to = *call.desc.add_inputs();
      to.set_name(input.name);
      *to.mutable_tensor() = input.desc;
      if (has_value) {
        to.set_value(reinterpret_cast<const char*>(input.bytes.data), input.bytes.size);
      } else {
        call.inputs.push_back(std::move(input.bytes));
      }
    }
  }
  return call;
}

}  // namespace opmill
