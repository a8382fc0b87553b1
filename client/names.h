// Names of the contract's enumerations for people: "float32", "log_sum_exp", "5.0".
#ifndef OPMILL_CLIENT_NAMES_H_
#define OPMILL_CLIENT_NAMES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "opmill/v1/operator.pb.h"
#include "opmill/v1/tensor.pb.h"

namespace opmill {

std::string NameOf(v1::DataType type);            // "float32", NumPy's name
std::string NameOf(v1::ReduceFunction function);  // "log_sum_exp"
std::string NameOf(v1::FeatureLevel level);       // "5.0"
std::string NameOf(v1::AxisDirection direction);  // "increasing"

// All levels, in the contract's order.
std::vector<std::string> FeatureLevelNames();

// The error lists the valid names.
absl::StatusOr<v1::DataType> ParseDataType(absl::string_view name);
absl::StatusOr<v1::FeatureLevel> ParseFeatureLevel(absl::string_view name);

// The size of one of the ten types; 0 for others.
size_t ElementBytes(v1::DataType type);

}  // namespace opmill

#endif  // OPMILL_CLIENT_NAMES_H_
