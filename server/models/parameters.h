// Parameters of models and requests, by which they choose an operator's attributes.
#ifndef OPMILL_SERVER_MODELS_PARAMETERS_H_
#define OPMILL_SERVER_MODELS_PARAMETERS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {

// Values as text, by the names that ParameterOf returns.
using Parameters = std::map<std::string, std::string, std::less<>>;

// The parameter that a name stands for: an attribute, by its name in the schema or without "axis_",
// "axis" and "axes" both for the axes; index_type; or feature_level. nullopt for other names.
std::optional<std::string> ParameterOf(const OperatorSchema& schema, absl::string_view name);
// The names for messages: "axes, direction, index_type, feature_level".
std::string ParameterNames(const OperatorSchema& schema, const Parameters& given);

// The valid descriptor of an operator with these inputs and parameters. Negative axes count from
// the end. Errors name fields as in the inputs of the descriptor, and as "parameters.axes".
absl::StatusOr<OperatorDesc> DescribeOperator(const OperatorSchema& schema,
                                              std::vector<TensorDesc> inputs,
                                              const Parameters& parameters);

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_PARAMETERS_H_
