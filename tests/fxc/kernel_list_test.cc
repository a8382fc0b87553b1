#include "tests/fxc/kernel_list.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/operators/operator_plan.h"
#include "tests/conformance/case_generator.h"

namespace opmill {
namespace {

using ::testing::IsEmpty;

const KernelList& List() {
  static const auto* const list = new KernelList(ListKernels());
  return *list;
}

std::set<std::string> Lines() {
  std::set<std::string> lines;
  for (const KernelPermutation& kernel : List().kernels) lines.insert(ToLine(kernel));
  return lines;
}

TEST(KernelList, NamesAKernelByOneLine) {
  EXPECT_EQ(ToLine({"reduce", "Reduce", {{"DATA_TYPE", 1}, {"THREADS", 8}}}),
            "reduce Reduce DATA_TYPE=1 THREADS=8");
}

// The cases of the conformance test come from a separate generator.
TEST(KernelList, HoldsEveryKernelOfRandomConformanceCases) {
  const std::set<std::string> known = Lines();
  for (const AdapterSize size : {SizeOf(DeviceKind::kSoftware, 0, 0), AdapterSize()}) {
    const PlanOptions own = PlanOptionsFor(size);
    std::map<std::string, std::string> unknown;  // kernel -> the case that needs it
    for (uint64_t seed = 0; seed < 5'000; ++seed) {
      const ConformanceCase c = RandomCase(seed, own);
      const absl::StatusOr<OperatorPlan> plan = MakePlan(c.desc, c.options);
      if (!plan.ok()) continue;
      for (const KernelPermutation& kernel : plan->kernels) {
        if (!known.contains(ToLine(kernel))) unknown.emplace(ToLine(kernel), ToLine(c));
      }
    }
    EXPECT_THAT(unknown, IsEmpty());
  }
}

TEST(CoverPairs, HasEveryTwoValuesTogetherInFewerKernels) {
  std::vector<KernelPermutation> kernels;
  for (uint32_t bits = 0; bits < 64; ++bits) {
    KernelPermutation kernel = {.shader = "s", .entry = "E"};
    for (uint32_t m = 0; m < 6; ++m) {
      kernel.macros.push_back({std::string(1, static_cast<char>('A' + m)), bits >> m & 1});
    }
    kernels.push_back(kernel);
  }
  const std::vector<KernelPermutation> chosen = CoverPairs(kernels);
  EXPECT_LT(chosen.size(), 16u);
  for (size_t a = 0; a < 6; ++a) {
    for (size_t b = 0; b < a; ++b) {
      std::set<std::pair<uint32_t, uint32_t>> values;
      for (const KernelPermutation& kernel : chosen) {
        values.emplace(kernel.macros[a].value, kernel.macros[b].value);
      }
      EXPECT_EQ(values.size(), 4u) << a << " " << b;
    }
  }
}

}  // namespace
}  // namespace opmill
