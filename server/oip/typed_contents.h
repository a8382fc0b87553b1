// Tensors whose elements are fields of an InferTensorContents message, instead of raw bytes.
#ifndef OPMILL_SERVER_OIP_TYPED_CONTENTS_H_
#define OPMILL_SERVER_OIP_TYPED_CONTENTS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/descriptor/tensor.h"
#include "proto/payload.h"

namespace opmill::oip {

// Checks that `contents`, the serialized InferTensorContents messages of one tensor, has the
// elements of `tensor` and nothing else. `field` is the path of the contents.
absl::Status CheckContents(const std::vector<Payload>& contents, const TensorDesc& tensor,
                           const std::string& field);

// Passes the elements to `write` as bytes, piece by piece. `contents` must have passed
// CheckContents.
void ConvertContents(const std::vector<Payload>& contents, const TensorDesc& tensor,
                     const std::function<void(absl::Span<const std::byte>)>& write);

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_TYPED_CONTENTS_H_
