// What an operator is, as data: its tensors, its attributes, and what it takes at which feature
// level. Decoding, validation, GetServerInfo, statistics, the command line and tests read it.
#ifndef OPMILL_KERNELS_DESCRIPTOR_OPERATOR_SCHEMA_H_
#define OPMILL_KERNELS_DESCRIPTOR_OPERATOR_SCHEMA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/descriptor/feature_levels.h"
#include "kernels/descriptor/operator_desc.h"

namespace opmill {

enum class AttributeKind : uint32_t {
  kNumber,
  kFlag,    // 0 or 1
  kChoice,  // one of DirectML's enumerators, by its number
  kAxis,    // a dimension of the first input
  kAxes,    // a set of them
};

// A field of the operator's message in proto/opmill/v1/operator.proto, under the same name.
struct AttributeSchema {
  absl::string_view name;
  AttributeKind kind = AttributeKind::kNumber;
  absl::Span<const absl::string_view> choices = {};  // kChoice: DirectML's names, in its order
};

struct TensorSchema {
  absl::string_view name;      // of the field
  bool holds_indices = false;  // or may, depending on the function
};

// What an output must be: inferred from the inputs and attributes.
struct InferredOutput {
  std::vector<uint32_t> sizes;
  DataType data_type = DataType::kUnknown;  // where the caller names none
  bool holds_indices = false;  // whose type the caller may choose; values have `data_type`
};

// What a row or a table does not allow of a descriptor: the field, and "takes X, but Y is Z".
struct Breach {
  std::string field;
  std::string sentence;
};

// The rows of one of DirectML's operators, newest first. A newer row allows all that an older does.
struct SupportTable {
  absl::Span<const FeatureLevelRow> rows;
  // The functions that these rows are about, a bit each; all where the operator has no functions.
  uint32_t functions = ~uint32_t{0};
  // DirectML has the operator twice, and this is the older and narrower one: in what, and why it
  // cannot serve a descriptor; nothing where it can.
  absl::string_view condition = {};
  std::optional<Breach> (*find_breach)(const OperatorDesc&) = nullptr;
};

struct OperatorSchema {
  static constexpr size_t kNoFunctions = ~size_t{0};

  absl::string_view name;       // "argmin": of GetServerInfo, statistics and the command line
  absl::string_view wire_name;  // "arg_min": the field of the contract's OperatorDesc
  absl::string_view summary;    // "index of the smallest element over the axes"
  absl::Span<const TensorSchema> inputs;
  absl::Span<const TensorSchema> outputs;
  absl::Span<const AttributeSchema> attributes;
  // The attribute that chooses what is computed; it is part of the operator's name in sentences.
  size_t function_attribute = kNoFunctions;
  absl::Span<const SupportTable> support;
  // Infers the outputs, after tensors, choices and axes have been checked one by one. An error says
  // what is wrong with the descriptor as a whole.
  absl::Status (*infer)(const OperatorDesc&, std::vector<InferredOutput>&);

  bool has_functions() const { return function_attribute != kNoFunctions; }
  size_t AttributeIndex(absl::string_view attribute) const;  // attributes.size() where it has none
};

// All operators, in the order of kernels/operators/operator_list.inc.
absl::Span<const OperatorSchema* const> Operators();
// Its place among them.
size_t OperatorIndex(const OperatorDesc& desc);

// "LOG_SUM_EXP"; "UNKNOWN" for a number that the attribute does not have.
absl::string_view ChoiceName(const AttributeSchema& attribute, uint32_t value);
// DML_AXIS_DIRECTION
inline constexpr absl::string_view kAxisDirections[] = {"INCREASING", "DECREASING"};

// The dimensions that it works along; empty where it works on each element alone.
AttributeValues AxesOf(const OperatorDesc& desc);

// What sentences call it: "reduce LOG_SUM_EXP", "top_k".
std::string FullName(const OperatorDesc& desc);

// What the newest level allows of the descriptor's operator and function.
const FeatureLevelRow& NewestRow(const OperatorDesc& desc);
// The newest row of the table at `level`; null where the level does not have the operator.
const FeatureLevelRow* RowAt(const SupportTable& table, FeatureLevel level);
// The rows that can serve a valid `desc` at some level, newest first.
std::vector<const FeatureLevelRow*> RowsFor(const OperatorDesc& desc);

}  // namespace opmill

#endif  // OPMILL_KERNELS_DESCRIPTOR_OPERATOR_SCHEMA_H_
