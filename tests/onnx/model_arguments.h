#ifndef OPMILL_TESTS_ONNX_MODEL_ARGUMENTS_H_
#define OPMILL_TESTS_ONNX_MODEL_ARGUMENTS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/onnx/graph.h"
#include "kernels/onnx/specialize.h"

namespace opmill::onnx {

// Arguments NAME=SIZES ("x=1,3,224,224") and NAME:=INTEGER ("sr:=16000").
absl::StatusOr<InputBindings> ParseBindings(const Graph& graph, absl::Span<char* const> arguments);

}  // namespace opmill::onnx

#endif  // OPMILL_TESTS_ONNX_MODEL_ARGUMENTS_H_
