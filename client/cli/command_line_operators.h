// The names of operators on the command line: those of the schemas, the functions of reduce, and
// the names of other libraries for both.
#ifndef OPMILL_CLIENT_CLI_COMMAND_LINE_OPERATORS_H_
#define OPMILL_CLIENT_CLI_COMMAND_LINE_OPERATORS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {

struct NamedOperator {
  std::string name;
  const OperatorSchema* schema = nullptr;
  std::optional<uint32_t> function;  // the choice of the function, if the name is that of one
};

// All of them: argmin, argmax, reduce, ..., sum, mean, ... The methods of the Python package have
// the same names.
std::vector<std::string> OperatorNames();
// For help pages: "argmin, ..., element_wise_add (or add), ...; or a function of reduce: ...".
std::string OperatorList();
// In lower case, without aliases.
std::vector<std::string> ChoiceNames(const AttributeSchema& attribute);
// "argmax argmin average (or mean) ..."
std::string ChoiceList(const AttributeSchema& attribute);
// Null if there is no such name.
const NamedOperator* FindOperatorName(absl::string_view name);

// The value of a kChoice attribute by its name or an alias, in either case. The error lists the
// names, or suggests one.
absl::StatusOr<uint32_t> ParseChoice(const OperatorSchema& schema, const AttributeSchema& attribute,
                                     absl::string_view name);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_COMMAND_LINE_OPERATORS_H_
