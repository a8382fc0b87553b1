// Lists every kernel that plans can use, for compilers other than the engine's.
#ifndef OPMILL_TESTS_FXC_KERNEL_LIST_H_
#define OPMILL_TESTS_FXC_KERNEL_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/plan/plan.h"

namespace opmill {

// A line of the form `shader entry NAME=VALUE ...`, which names a kernel in lists and messages. The
// shader is SourceName(kernel).
std::string ToLine(const KernelPermutation& kernel);

struct KernelList {
  std::vector<KernelPermutation> kernels;  // sorted by their lines
  uint64_t plans = 0;                      // number of plans that they were collected from
};

// Plans every operator, function and type for software and hardware devices, in every layout and at
// sizes around every boundary, small and huge, until further plans add no kernels. Of element-wise
// operators except element_wise_add, each in each of its types, packed and with strides; of
// operators that move elements, random cases; of products of matrices, each kind.
KernelList ListKernels();

// A small subset in which, with the given ones, every value of a macro occurs with every value of
// each other macro, for each entry point, and every computation of a generated text.
std::vector<KernelPermutation> CoverPairs(const std::vector<KernelPermutation>& kernels,
                                          const std::vector<KernelPermutation>& given = {});

}  // namespace opmill

#endif  // OPMILL_TESTS_FXC_KERNEL_LIST_H_
