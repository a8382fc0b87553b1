#include "tests/conformance/case_cover.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/operators/operator_plan.h"
#include "tests/conformance/case_generator.h"
#include "tests/support/macro_pairs.h"

namespace opmill {
namespace {

// A software device computes this many elements in the time that it takes to compile a kernel.
constexpr double kElementsOfAKernel = 1 << 18;

// Numbers for equal values, from 0 on.
template <typename Value>
class Numbers {
 public:
  size_t Of(const Value& value) {
    return numbers_.try_emplace(value, numbers_.size()).first->second;
  }
  size_t size() const { return numbers_.size(); }

 private:
  absl::flat_hash_map<Value, size_t> numbers_;
};

struct Candidate {
  size_t set = 0;
  size_t number = 0;
  std::vector<size_t> kernels;   // with their device
  std::vector<size_t> features;  // the values and pairs, and the entry points with the kind
  double run_cost = 0;           // in kernels
};

class Chooser {
 public:
  Chooser(const std::vector<CaseSet>& sets, Slice pairs) : slice_(pairs) {
    for (size_t s = 0; s < sets.size(); ++s) {
      for (size_t i = 0; i < sets[s].cases.size(); ++i) AddCandidate(sets[s], s, i);
    }
    has_kernel_.resize(kernels_.size());
    has_feature_.resize(features_.size());
  }

  // Calls choose(set, number) for each chosen case.
  template <typename Choose>
  void Run(const std::vector<CaseSet>& sets, const Choose& choose) {
    for (const Candidate& candidate : candidates_) {
      if (sets[candidate.set].is_whole) Take(candidate, choose);
    }
    // Cases that add much at little cost come first.
    for (const double least : {16.0, 8.0, 4.0, 2.0, 1.0, 0.0}) {
      for (const Candidate& candidate : candidates_) {
        const auto gain = static_cast<double>(Missing(candidate.features, has_feature_));
        const auto added = static_cast<double>(Missing(candidate.kernels, has_kernel_));
        if (gain > 0 && gain >= least * (added + candidate.run_cost)) Take(candidate, choose);
      }
    }
  }

 private:
  void AddCandidate(const CaseSet& set, size_t set_number, size_t number) {
    const ConformanceCase& c = set.cases[number];
    const absl::StatusOr<OperatorPlan> plan = MakePlan(c.desc, c.options);
    Candidate candidate = {.set = set_number, .number = number};
    if (!plan.ok()) {  // chosen, and reported when it runs
      candidate.features.push_back(features_.Of(ToLine(c)));
    } else {
      for (const KernelPermutation& kernel : plan->kernels) {
        candidate.kernels.push_back(kernels_.Of({set.device, kernel}));
        for (const std::string& value : MacroValues(kernel)) {
          candidate.features.push_back(features_.Of(value));
        }
        for (const std::string& pair : MacroPairs(kernel)) {
          if (slice_.Has(pairs_.Of(pair))) candidate.features.push_back(features_.Of(pair));
        }
        candidate.features.push_back(
            features_.Of(absl::StrCat(set.kind, ": ", kernel.shader, " ", kernel.entry)));
      }
    }
    for (const TensorDesc& input : c.desc.inputs) {
      candidate.run_cost += static_cast<double>(ElementCount(input)) / kElementsOfAKernel;
    }
    for (std::vector<size_t>* numbers : {&candidate.kernels, &candidate.features}) {
      std::sort(numbers->begin(), numbers->end());
      numbers->erase(std::unique(numbers->begin(), numbers->end()), numbers->end());
    }
    candidates_.push_back(std::move(candidate));
  }

  static size_t Missing(const std::vector<size_t>& numbers, const std::vector<bool>& has) {
    return static_cast<size_t>(
        std::count_if(numbers.begin(), numbers.end(), [&](size_t n) { return !has[n]; }));
  }

  template <typename Choose>
  void Take(const Candidate& candidate, const Choose& choose) {
    for (const size_t kernel : candidate.kernels) has_kernel_[kernel] = true;
    for (const size_t feature : candidate.features) has_feature_[feature] = true;
    choose(candidate.set, candidate.number);
  }

  Numbers<std::pair<std::string, KernelPermutation>> kernels_;
  Numbers<std::string> features_, pairs_;
  const Slice slice_;
  std::vector<Candidate> candidates_;
  std::vector<bool> has_kernel_, has_feature_;
};

}  // namespace

std::vector<CaseSet> SystematicSets(const std::string& device, const PlanOptions& own) {
  std::vector<CaseSet> sets;
  for (const DataType type : kAllDataTypes) {
    sets.push_back({std::string(ToString(type)), device, SystematicCases(type, own)});
  }
  return sets;
}

CaseCover::CaseCover(const std::vector<CaseSet>& sets, Slice pairs) {
  for (const CaseSet& set : sets) chosen_.emplace_back(set.cases.size());
  Chooser(sets, pairs).Run(sets, [&](size_t set, size_t number) {
    chosen_[set][number] = true;
    const ConformanceCase& c = sets[set].cases[number];
    const absl::StatusOr<OperatorPlan> plan = MakePlan(c.desc, c.options);
    if (plan.ok()) kernels_.insert(plan->kernels.begin(), plan->kernels.end());
  });
}

bool CaseCover::HasKernelsOf(const ConformanceCase& c) const {
  const absl::StatusOr<OperatorPlan> plan = MakePlan(c.desc, c.options);
  return plan.ok() && std::all_of(plan->kernels.begin(), plan->kernels.end(),
                                  [&](const auto& kernel) { return kernels_.contains(kernel); });
}

}  // namespace opmill
