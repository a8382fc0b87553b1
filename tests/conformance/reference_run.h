// Runs one operator on a device, and compares the results with those of the reference.
#ifndef OPMILL_TESTS_CONFORMANCE_REFERENCE_RUN_H_
#define OPMILL_TESTS_CONFORMANCE_REFERENCE_RUN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/engine/device.h"
#include "kernels/reference/element_access.h"
#include "tests/conformance/values.h"
#include "tests/support/programs.h"

namespace opmill {

using TensorValues = std::vector<std::vector<std::byte>>;

TensorValues ValuesFor(const OperatorDesc& validated, ValuePattern pattern, uint64_t seed);
TensorValues ReferenceResults(const OperatorDesc& validated, const TensorValues& inputs);

// The error of a number that a result may have before it is rounded to its type. `want` is the
// reference's, which is rounded.
using Bound = std::function<double(const Coordinate& at, double want)>;
// The first mistake of outputs, or "". Without a bound all bytes must be the reference's.
std::string FindDifference(const OperatorDesc& validated, const TensorValues& inputs,
                           const TensorValues& outputs, const Bound& bound = nullptr);

// Runs the plan that a device with views of so many elements would have; other devices than those
// of Direct3D run their own.
absl::StatusOr<TensorValues> RunWithViews(Device& device, const OperatorDesc& validated,
                                          const TensorValues& inputs, uint64_t max_view_elements);

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_REFERENCE_RUN_H_
