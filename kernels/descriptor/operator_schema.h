// The schema of an operator: its tensors, its attributes, and what it supports at each feature
// level. Decoding, validation, GetServerInfo, statistics, the command line and tests read it.
#ifndef OPMILL_KERNELS_DESCRIPTOR_OPERATOR_SCHEMA_H_
#define OPMILL_KERNELS_DESCRIPTOR_OPERATOR_SCHEMA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/descriptor/feature_levels.h"
#include "kernels/descriptor/operator_desc.h"

namespace opmill {

enum class OperatorFamily : uint32_t;  // kernels/operators/operator_list.h

// What an attribute is, and in parentheses the alternative of AttributeValue that it has.
enum class AttributeKind : uint32_t {
  kNumber,  // (uint32_t)
  kFlag,    // 0 or 1 (uint32_t)
  kChoice,  // one of DirectML's enumerators, by its number (uint32_t)
  kAxis,    // a dimension of the first input (uint32_t)
  kAxes,    // a set of dimensions (std::vector<uint32_t>)
  kSigned,  // (int32_t)
  kFloat,   // (float)
  kScalar,  // a number of the first output's type (Scalar)
  kNumbers,
  kSignedNumbers,
  kFloatNumbers,  // lists (std::vector)
};
constexpr bool IsAxes(AttributeKind kind) {
  return kind == AttributeKind::kAxis || kind == AttributeKind::kAxes;
}

// An attribute: a field of the operator's message in proto/opmill/v1/operator.proto, or an entry of
// the map in NamedOperatorDesc, with the same name.
struct AttributeSchema {
  absl::string_view name;
  AttributeKind kind = AttributeKind::kNumber;
  absl::Span<const absl::string_view> choices = {};  // kChoice: DirectML's names, in its order
  // As ParseAttribute reads it: what is used if it is not given; empty: it must be given. Operators
  // with a message of their own have no defaults in the contract.
  absl::string_view default_text = {};
  // kNumber of an operator with rows: the outputs have this many elements in each row, and with a
  // smaller number the first of these. Returns the largest valid number.
  uint32_t (*longest_row)(const OperatorDesc&) = nullptr;
};

struct TensorSchema {
  absl::string_view name;                    // of the field in the message
  TypeVariable type = TypeVariable::kValue;  // kIndex also if that depends on the function
  bool optional = false;                     // of inputs: the last ones may be left out
  // Of inputs: rows of the outputs depend on the same rows of this input, and on no other rows of
  // it, or on its only row.
  bool has_rows = false;
  // Of an optional last input with rows: one row of UINT8 ones, which gives the same outputs as
  // leaving the input out.
  TensorDesc (*ones_if_absent)(const OperatorDesc&) = nullptr;
  // Of inputs: each of its rows has an element in each row of that last input, and where that is 0
  // the outputs do not depend on it.
  bool rows_have_ones = false;
};

// The required properties of an output, inferred from the inputs and attributes.
struct InferredOutput {
  std::vector<uint32_t> sizes;
  DataType data_type = DataType::kUnknown;  // the default type
  bool type_is_free = false;  // the caller may choose one of the row; otherwise it is `data_type`
};

// Why a row or table does not support a descriptor: the field, and "takes X, but Y is Z".
struct Breach {
  std::string field;
  std::string sentence;
};

// The rows of one DirectML operator, newest first. A newer row supports everything that an older
// one does.
struct SupportTable {
  absl::Span<const FeatureLevelRow> rows;
  // Bit mask of the functions that the rows apply to; all bits if the operator has no functions.
  uint32_t functions = ~uint32_t{0};
  // For the older and narrower of two DirectML versions of an operator: the restriction in words,
  // and a function that returns why this version cannot serve a descriptor, or nullopt if it can.
  absl::string_view condition = {};
  std::optional<Breach> (*find_breach)(const OperatorDesc&) = nullptr;
};

struct OperatorSchema {
  static constexpr size_t kNoFunctions = ~size_t{0};

  absl::string_view name;            // "argmin": in GetServerInfo, statistics and the command line
  absl::string_view alias = {};      // another library's name for it, which callers may use
  absl::string_view wire_name = {};  // "arg_min": the field in the OperatorDesc message
  absl::string_view summary;         // "index of the smallest element over the axes"
  absl::Span<const TensorSchema> inputs;
  absl::Span<const TensorSchema> outputs;
  absl::Span<const AttributeSchema> attributes;
  OperatorFamily family = {};
  // The attribute that selects the function; messages include it in the operator's name.
  size_t function_attribute = kNoFunctions;
  absl::Span<const SupportTable> support;
  // Infers the outputs, after tensors, choices and axes have been checked individually. Returns an
  // error if the descriptor as a whole is invalid.
  absl::Status (*infer)(const OperatorDesc&, std::vector<InferredOutput>&);

  // Operators of the contract's generic message have no field of their own.
  bool has_own_message() const { return !wire_name.empty(); }
  size_t required_inputs() const;
  // Several requests may be computed as one, row after row.
  bool has_rows() const { return !inputs.empty() && inputs[0].has_rows; }
  bool has_functions() const { return function_attribute != kNoFunctions; }
  size_t AttributeIndex(absl::string_view attribute) const;  // attributes.size() if there is none
  // The attribute with longest_row; attributes.size() if none has it.
  size_t RowLengthIndex() const;
  bool has_row_length() const { return RowLengthIndex() < attributes.size(); }
};

// "LOG_SUM_EXP"; "UNKNOWN" for a number that the attribute does not define.
absl::string_view ChoiceName(const AttributeSchema& attribute, uint32_t value);
// DML_AXIS_DIRECTION
inline constexpr absl::string_view kAxisDirections[] = {"INCREASING", "DECREASING"};

// The dimensions that the operator works along; empty if it is elementwise.
std::vector<uint32_t> AxesOf(const OperatorDesc& desc);

// The name for messages: "reduce LOG_SUM_EXP", "top_k".
std::string FullName(const OperatorDesc& desc);

// The row for the descriptor's operator and function at the newest level.
const FeatureLevelRow& NewestRow(const OperatorDesc& desc);
// The newest row of the table at `level`; null if the operator does not exist at that level.
const FeatureLevelRow* RowAt(const SupportTable& table, FeatureLevel level);
// The rows that support the valid `desc` at some level, newest first.
absl::InlinedVector<const FeatureLevelRow*, 8> RowsFor(const OperatorDesc& desc);

}  // namespace opmill

#endif  // OPMILL_KERNELS_DESCRIPTOR_OPERATOR_SCHEMA_H_
