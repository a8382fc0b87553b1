#include "kernels/operators/operator_reference.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/operator_list.h"
#include "kernels/reference/element_access.h"

namespace opmill {

#define OPMILL_FAMILY(Name) void Reference##Name(const ReferenceCall& call);
#include "kernels/operators/operator_list.inc"
#undef OPMILL_FAMILY

namespace {

using ReferenceFunction = void (*)(const ReferenceCall&);
constexpr ReferenceFunction kReferenceFunctions[] = {
#define OPMILL_FAMILY(Name) &Reference##Name,
#include "kernels/operators/operator_list.inc"
#undef OPMILL_FAMILY
};

absl::Status CheckBytes(absl::string_view name, uint64_t size, uint64_t needed) {
  if (size >= needed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " has ", size, " bytes; its tensor needs ", needed, "."));
}

absl::Status CheckCount(const OperatorDesc& desc, size_t given, size_t has,
                        absl::string_view what) {
  if (given == has) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(OperatorName(desc), " has ", has, " ", what, ", but ", given, " are given."));
}

}  // namespace

absl::Status ReferenceRun(const OperatorDesc& validated,
                          absl::Span<const absl::Span<const std::byte>> inputs,
                          absl::Span<const absl::Span<std::byte>> outputs,
                          const std::stop_token& abandoned) {
  RETURN_IF_ERROR(CheckCount(validated, inputs.size(), validated.inputs.size(), "inputs"));
  RETURN_IF_ERROR(CheckCount(validated, outputs.size(), validated.outputs.size(), "outputs"));
  for (size_t i = 0; i < inputs.size(); ++i) {
    RETURN_IF_ERROR(CheckBytes(absl::StrCat("inputs[", i, "]"), inputs[i].size(),
                               SpannedBytes(validated.inputs[i])));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    RETURN_IF_ERROR(CheckBytes(absl::StrCat("outputs[", i, "]"), outputs[i].size(),
                               RequiredBytes(*validated.outputs[i])));
  }
  if (!abandoned.stop_requested()) {
    kReferenceFunctions[static_cast<size_t>(validated.schema->family)](
        {validated, inputs, outputs, abandoned});
  }
  if (abandoned.stop_requested()) return absl::CancelledError("The run was abandoned.");
  return absl::OkStatus();
}

}  // namespace opmill
