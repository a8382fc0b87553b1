// Passes a descriptor through the real decoder, validation and planner.
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "cases.pb.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/validate.h"
#include "kernels/engine/operator_cache.h"
#include "kernels/operators/lower.h"
#include "kernels/operators/operator_plan.h"
#include "kernels/plan/plan.h"
#include "server/api/grpc_status.h"
#include "server/api/request_decoder.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/field_path.h"
#include "tests/fuzz/proto_mutator.h"
#include "tests/plan_bounds/plan_bounds.h"

namespace opmill {
namespace {

void CheckRefusal(const absl::Status& refusal, absl::StatusCode code) {
  FUZZ_CHECK(refusal.code() == code, refusal.ToString());
  FUZZ_CHECK(IsSentence(refusal) && refusal.message().back() == '.', refusal.ToString());
}

PlanOptions OptionsOf(const fuzz::PlanCase& c) {
  PlanOptions options;
  options.max_view_elements = uint64_t{1} << (c.view_bits() == 0 ? 27 : 10 + c.view_bits() % 18);
  if (c.hardware()) {
    options.threads = 256;
    options.parallel_groups = 512;
  } else {
    options.threads = 8;
    options.parallel_groups = 64;
  }
  return options;
}

// Includes sanitizers, which make it ten times slower, and a busy machine.
constexpr double kMaxPlanSeconds = 10;

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Needs so many views that its plan has many thousands of dispatches, which plan_test covers. The
// server refuses such tensors for their size before planning.
bool ReachesFar(const OperatorDesc& desc, const PlanOptions& options) {
  std::vector<TensorDesc> tensors = OutputsOf(desc);
  tensors.insert(tensors.end(), desc.inputs.begin(), desc.inputs.end());
  const uint64_t view_bytes = options.max_view_elements;  // for the narrowest elements
  return std::any_of(tensors.begin(), tensors.end(), [view_bytes](const TensorDesc& tensor) {
    return RequiredBytes(tensor) > 512 * view_bytes;
  });
}

void Run(const fuzz::PlanCase& c) {
  const std::optional<v1::FeatureLevel> level =
      c.has_feature_level() ? std::optional(c.feature_level()) : std::nullopt;
  const absl::StatusOr<OperatorDesc> desc = DecodeOperator(c.operator_(), level);
  if (!desc.ok()) {
    CheckRefusal(desc.status(), absl::IsFailedPrecondition(desc.status())
                                    ? absl::StatusCode::kFailedPrecondition
                                    : absl::StatusCode::kInvalidArgument);
    const std::string field = FieldOf(desc.status()).value_or("");
    FUZZ_CHECK(NamesField(field, v1::ExecuteRequest::descriptor()), field, " of ",
               desc.status().ToString());
    FUZZ_CHECK(ToGrpcStatus(desc.status()).error_details().size() < 4096, "too long for a header");
    return;
  }
  const absl::StatusOr<OperatorDesc> again =
      Validate(*desc, level.has_value() ? static_cast<FeatureLevel>(*level) : kNewestFeatureLevel);
  FUZZ_CHECK(again.ok() && *again == *desc, ToString(*desc));
  FUZZ_CHECK(OperatorKey(*desc).size() == 64, ToString(*desc));
  FUZZ_CHECK(ToString(*desc).size() < 2000, ToString(*desc));
  for (const TensorDesc& output : OutputsOf(*desc)) {
    FUZZ_CHECK(!HasOverlap(output), ToString(*desc));
    FUZZ_CHECK(RequiredBytes(output) >= SpannedBytes(output) && SpannedBytes(output) > 0,
               ToString(*desc));
  }

  const PlanOptions options = OptionsOf(c);
  if (ReachesFar(*desc, options)) return;
  for (const ProgramNode& node : Lower(ProgramOf(*desc)).nodes) {
    const double begun = ProcessorSeconds();
    const absl::StatusOr<OperatorPlan> plan = MakePlan(node.desc, options);
    FUZZ_CHECK(ProcessorSeconds() - begun < kMaxPlanSeconds, ToString(node.desc));
    if (!plan.ok()) return CheckRefusal(plan.status(), absl::StatusCode::kResourceExhausted);
    const std::string mistake = FindPlanMistake(node.desc, options, *plan);
    FUZZ_CHECK(mistake.empty(), mistake, " in ", ToString(node.desc));
  }
}

}  // namespace
}  // namespace opmill

OPMILL_FUZZ_MESSAGE(opmill::fuzz::PlanCase, opmill::Run)
