// The bytes of a message, in one piece.
#ifndef OPMILL_TESTS_FUZZ_MESSAGE_BYTES_H_
#define OPMILL_TESTS_FUZZ_MESSAGE_BYTES_H_

#include <string>
#include <vector>

#include "grpcpp/support/byte_buffer.h"
#include "tests/fuzz/check.h"

namespace opmill {

inline std::string MessageBytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  FUZZ_CHECK(buffer.Dump(&slices).ok(), "The message cannot be read.");
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace opmill

#endif  // OPMILL_TESTS_FUZZ_MESSAGE_BYTES_H_
