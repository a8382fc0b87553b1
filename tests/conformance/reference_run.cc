#include "tests/conformance/reference_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/operators/operator_plan.h"
#include "kernels/operators/operator_reference.h"

namespace opmill {
namespace {

bool Accepts(DataType type, double want, double got, double error) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want) || std::isnan(got) || std::isinf(got)) return want == got;
  // Roundings to the type, of the reference too, and flushed denormals.
  const double ulp = type == DataType::kFloat16 ? 0x1p-10 : 0x1p-23;
  const double tiny = type == DataType::kFloat16 ? 0x1p-24 : 0x1p-125;
  return std::abs(want - got) <= error + ulp * std::abs(want) + tiny;
}

}  // namespace

TensorValues ValuesFor(const OperatorDesc& validated, ValuePattern pattern, uint64_t seed) {
  TensorValues values;
  for (const TensorDesc& input : validated.inputs) {
    values.push_back(
        MakeValues(pattern, input.data_type, RequiredBytes(input), 1, seed + values.size()));
  }
  return values;
}

TensorValues ReferenceResults(const OperatorDesc& validated, const TensorValues& inputs) {
  const std::vector<absl::Span<const std::byte>> in(inputs.begin(), inputs.end());
  TensorValues results;
  for (const TensorDesc& output : OutputsOf(validated)) results.emplace_back(RequiredBytes(output));
  std::vector<absl::Span<std::byte>> out;
  for (std::vector<std::byte>& result : results) out.push_back(absl::MakeSpan(result));
  EXPECT_EQ(ReferenceRun(validated, in, out), absl::OkStatus());
  return results;
}

std::string FindDifference(const OperatorDesc& validated, const TensorValues& inputs,
                           const TensorValues& outputs, const Bound& bound) {
  const TensorValues wanted = ReferenceResults(validated, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == wanted[i]) continue;
    const TensorDesc& desc = *validated.outputs[i];
    const Reader want(desc, wanted[i]);
    const Reader got(desc, outputs[i]);
    std::vector<std::byte> gaps = outputs[i];
    std::string difference;
    ForEachCoordinate(desc.sizes, {}, [&](const Coordinate& at) {
      const uint32_t bytes = ElementBytes(desc.data_type);
      std::memset(gaps.data() + ElementOffset(at, EffectiveStrides(desc)) * bytes, 0, bytes);
      if (!difference.empty() || want.At(at) == got.At(at)) return;
      const auto name = [&] {
        return absl::StrCat("element [", absl::StrJoin(at, ","), "] of output ", i, " is ");
      };
      if (bound == nullptr) {
        difference = absl::StrCat(name(), "0x", absl::Hex(got.At(at)), " instead of 0x",
                                  absl::Hex(want.At(at)));
        return;
      }
      const double number = ToDouble(desc.data_type, want.At(at));
      const double other = ToDouble(desc.data_type, got.At(at));
      const double error = std::isfinite(number) ? bound(at, number) : 0;
      if (Accepts(desc.data_type, number, other, error)) return;
      difference = absl::StrCat(name(), other, " instead of ", number, " within ", error);
    });
    if (!difference.empty()) return difference;
    for (const std::byte gap : gaps) {
      if (gap != std::byte{0}) return "the output is not zero between elements";
    }
  }
  return "";
}

absl::StatusOr<TensorValues> RunWithViews(Device& device, const OperatorDesc& validated,
                                          const TensorValues& inputs, uint64_t max_view_elements) {
  PlanOptions options = PlanOptionsForTest(device);
  options.max_view_elements = max_view_elements;
  ASSIGN_OR_RETURN(OperatorPlan plan, MakePlan(validated, options));
  ASSIGN_OR_RETURN(auto compiled, CompilePlanForTest(device, validated, std::move(plan)));
  Bindings bindings;
  for (const std::vector<std::byte>& input : inputs) {
    ASSIGN_OR_RETURN(bindings.inputs.emplace_back(),
                     device.Allocate(input.size(), Residency::kUpload));
    std::memcpy(bindings.inputs.back().bytes().data(), input.data(), input.size());
  }
  for (const TensorDesc& output : OutputsOf(validated)) {
    ASSIGN_OR_RETURN(bindings.outputs.emplace_back(),
                     device.Allocate(RequiredBytes(output), Residency::kReadback));
  }
  RETURN_IF_ERROR(device.RunAndWait(std::move(compiled), bindings).status());
  TensorValues outputs;
  for (const auto& buffer : bindings.outputs) {
    outputs.emplace_back(buffer.bytes().begin(), buffer.bytes().end());
  }
  return outputs;
}

}  // namespace opmill
