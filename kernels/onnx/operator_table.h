// What is known of each ONNX operator: one row.
#ifndef OPMILL_KERNELS_ONNX_OPERATOR_TABLE_H_
#define OPMILL_KERNELS_ONNX_OPERATOR_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/onnx/builder.h"
#include "kernels/onnx/lowering.h"
#include "kernels/onnx/node_reader.h"

namespace opmill::onnx {

inline constexpr size_t kAnyNumber = 1 << 16;

struct OperatorRow {
  absl::string_view name;
  size_t least_inputs = 1;
  size_t most_inputs = 1;
  absl::string_view attributes = {};  // names, separated by spaces; others are refused

  // The types of the outputs.
  void (*infer)(NodeReader&, std::vector<TensorType>& outputs) = nullptr;
  // The outputs of simpler nodes with the same meaning; nullopt if there are none in this case.
  std::optional<std::vector<ValueId>> (*expand)(NodeReader&, Builder&) = nullptr;
  // Computes the outputs if all inputs are constant; null: the lowered operator is computed.
  void (*fold)(NodeReader&, std::vector<std::string>& outputs) = nullptr;
  // The views of the outputs; null: no device has a kernel.
  std::vector<View> (*lower)(Lowering&, absl::Span<const View> inputs) = nullptr;
  absl::string_view schema = {};  // of operators of which one function lowers several
  // Bit i: the sizes of the outputs depend on the values of input i, which must be constant.
  uint32_t form_inputs = 0;
};

const OperatorRow* FindOperator(absl::string_view name);  // null if there is none
absl::Span<const OperatorRow> OperatorRows();             // by name

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_OPERATOR_TABLE_H_
