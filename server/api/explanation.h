// Encodes what became of a model.
#ifndef OPMILL_SERVER_API_EXPLANATION_H_
#define OPMILL_SERVER_API_EXPLANATION_H_

#include "kernels/engine/program_report.h"
#include "kernels/onnx/explain.h"
#include "opmill/v1/service.pb.h"

namespace opmill {

// The steps of the device, and for an ONNX model its nodes, which are null for others.
void EncodeExplanation(const onnx::Explanation* explained, const RunProfile& profile,
                       v1::ExplainModelResponse& to);

}  // namespace opmill

#endif  // OPMILL_SERVER_API_EXPLANATION_H_
