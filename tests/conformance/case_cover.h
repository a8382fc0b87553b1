// Chooses few of many conformance cases. Kernels cost a software device far more than cases: it
// takes half a second to compile one.
#ifndef OPMILL_TESTS_CONFORMANCE_CASE_COVER_H_
#define OPMILL_TESTS_CONFORMANCE_CASE_COVER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "kernels/plan/plan.h"
#include "tests/conformance/conformance_case.h"

namespace opmill {

struct CaseSet {
  // At least one case of a kind is chosen for each entry point of shaders that its cases use.
  std::string kind;
  std::string device;  // its name; devices share no kernels
  std::vector<ConformanceCase> cases;
  bool is_whole = false;  // all of its cases are chosen
};

// The systematic table: a set for each type.
std::vector<CaseSet> SystematicSets(const std::string& device, const PlanOptions& own);

// One in `share`, from number `first` on.
struct Slice {
  uint64_t share = 1;
  uint64_t first = 0;

  bool Has(uint64_t number) const { return number % share == first; }
};

// The chosen cases together have every value of a macro (MacroValues) that the kernels of any case
// have, and a slice of the pairs (MacroPairs). The choice depends only on the arguments.
class CaseCover {
 public:
  explicit CaseCover(const std::vector<CaseSet>& sets, Slice pairs = {});

  // Whether the case with this number in the set is chosen.
  bool Chooses(size_t set, size_t number) const { return chosen_[set][number]; }
  // Whether chosen cases use all kernels of the case.
  bool HasKernelsOf(const ConformanceCase& c) const;
  // Those of the chosen cases.
  const absl::flat_hash_set<KernelPermutation>& kernels() const { return kernels_; }

 private:
  std::vector<std::vector<bool>> chosen_;
  absl::flat_hash_set<KernelPermutation> kernels_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_CASE_COVER_H_
