#ifndef OPMILL_TESTS_SUPPORT_MACRO_PAIRS_H_
#define OPMILL_TESTS_SUPPORT_MACRO_PAIRS_H_

#include <string>
#include <vector>

#include "kernels/plan/plan.h"

namespace opmill {

// Each value of a macro of the kernel, with the name of its entry point; that name if it has no
// macro.
std::vector<std::string> MacroValues(const KernelPermutation& kernel);

// Every two of these values. A change of one kernel's code is likely to affect another one with
// such a pair.
std::vector<std::string> MacroPairs(const KernelPermutation& kernel);

}  // namespace opmill

#endif  // OPMILL_TESTS_SUPPORT_MACRO_PAIRS_H_
