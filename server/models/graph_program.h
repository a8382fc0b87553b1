// What chooses the program of an ONNX model for a request.
#ifndef OPMILL_SERVER_MODELS_GRAPH_PROGRAM_H_
#define OPMILL_SERVER_MODELS_GRAPH_PROGRAM_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/descriptor/tensor.h"
#include "kernels/onnx/model.h"
#include "server/models/model.h"

namespace opmill {

// Of the model's input of this index: its path in the request.
using PathOfInput = absl::FunctionRef<std::string(size_t index)>;
// Copies its packed elements, which fill `to`.
using ReadInput = absl::FunctionRef<absl::Status(size_t index, absl::Span<std::byte> to)>;

// `inputs` are those of the model, in its order. Those that decide which program it is are read.
// Errors name the path of an input.
absl::StatusOr<onnx::InputBindings> BindingsOf(const Model& model,
                                               const std::vector<TensorDesc>& inputs,
                                               PathOfInput path_of, ReadInput read);

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_GRAPH_PROGRAM_H_
