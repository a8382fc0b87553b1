// What a file in protobuf's format takes in memory, before it is parsed.
#ifndef OPMILL_KERNELS_ONNX_WIRE_SIZE_H_
#define OPMILL_KERNELS_ONNX_WIRE_SIZE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/zero_copy_stream.h"

namespace opmill::onnx {

// InvalidArgument if the stream is not a message of the type, ResourceExhausted if the message
// takes more than `limit_bytes`. Two bytes of a file may be an empty message, which takes 200.
absl::Status CheckWireSize(google::protobuf::io::ZeroCopyInputStream& stream,
                           const google::protobuf::Descriptor& type, uint64_t limit_bytes);

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_WIRE_SIZE_H_
