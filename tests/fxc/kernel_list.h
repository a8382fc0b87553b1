// Every kernel that a plan can ask for, for compilers that are not the engine's own.
#ifndef OPMILL_TESTS_FXC_KERNEL_LIST_H_
#define OPMILL_TESTS_FXC_KERNEL_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/plan/plan.h"

namespace opmill {

// One line, `shader entry NAME=VALUE ...`: names a kernel in lists and in messages.
std::string ToLine(const KernelPermutation& kernel);

struct KernelList {
  std::vector<KernelPermutation> kernels;  // in the order of their lines
  uint64_t plans = 0;                      // that they were collected from
};

// Plans every operator, function and type for software and for hardware devices, in every layout
// and at sizes around every boundary, small and huge, until plans bring nothing new.
KernelList ListKernels();

// Few of them that have every macro's every value beside every other macro's, in each entry point:
// what changes the code of one kernel changes that of one of these.
std::vector<KernelPermutation> CoverPairs(const std::vector<KernelPermutation>& kernels);

}  // namespace opmill

#endif  // OPMILL_TESTS_FXC_KERNEL_LIST_H_
