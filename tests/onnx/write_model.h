#ifndef OPMILL_TESTS_ONNX_WRITE_MODEL_H_
#define OPMILL_TESTS_ONNX_WRITE_MODEL_H_

#include <string>

#include "kernels/onnx/graph.h"

namespace opmill::onnx {

// A specialized graph as an ONNX file, for other runtimes.
std::string WriteModel(const Graph& graph);

}  // namespace opmill::onnx

#endif  // OPMILL_TESTS_ONNX_WRITE_MODEL_H_
