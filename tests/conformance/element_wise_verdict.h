// Checks the results of element-wise operators against the reference, within the bound of their
// row.
#ifndef OPMILL_TESTS_CONFORMANCE_ELEMENT_WISE_VERDICT_H_
#define OPMILL_TESTS_CONFORMANCE_ELEMENT_WISE_VERDICT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/descriptor/operator_desc.h"

namespace opmill {

// Returns the first mistake, or "". Gaps of the output must be zero. Arithmetic may flush
// denormals, and a NaN may be any quiet one.
std::string FindElementWiseMistake(const OperatorDesc& validated,
                                   const std::vector<std::vector<std::byte>>& inputs,
                                   const std::vector<std::byte>& output);

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_ELEMENT_WISE_VERDICT_H_
