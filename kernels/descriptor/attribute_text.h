// Attributes as text, for messages, the command line and parameters of the Open Inference Protocol.
#ifndef OPMILL_KERNELS_DESCRIPTOR_ATTRIBUTE_TEXT_H_
#define OPMILL_KERNELS_DESCRIPTOR_ATTRIBUTE_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {

// "[0,2]", "5", "LOG_SUM_EXP", "0.25"; ParseAttribute reads floats back exactly.
void AppendAttribute(const AttributeSchema& attribute, const AttributeValue& value,
                     std::string& text);

// Reads "0,2", "5", "log_sum_exp" in either case, "0.25", "true". The error is what the text is
// not: "is not an integer from 0 to 4294967295".
absl::StatusOr<AttributeValue> ParseAttribute(const AttributeSchema& attribute,
                                              absl::string_view text);

// The value of an attribute that is not given; InvalidArgument if it must be.
absl::StatusOr<AttributeValue> DefaultOf(const AttributeSchema& attribute);
// A value that is valid for any operator that requires the attribute.
AttributeValue ExampleOf(const AttributeSchema& attribute);

}  // namespace opmill

#endif  // OPMILL_KERNELS_DESCRIPTOR_ATTRIBUTE_TEXT_H_
