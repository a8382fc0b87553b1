// How much of an execution's inputs has arrived, and whether a chunk is the next of its input.
#ifndef OPMILL_SERVER_EXECUTION_UPLOAD_H_
#define OPMILL_SERVER_EXECUTION_UPLOAD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/descriptor/operator_desc.h"
#include "proto/payload.h"

namespace opmill {

// The chunks of an input come in order; those of different inputs in any. Not thread-safe; it sees
// sizes only, no bytes.
class Upload {
 public:
  explicit Upload(const OperatorDesc& desc);

  uint64_t bytes() const { return bytes_; }        // of all inputs, without what rounds them up
  uint64_t received() const { return received_; }  // of those
  bool complete() const { return received_ == bytes_; }
  // Where the next chunk of that input belongs.
  uint64_t received(size_t input) const { return inputs_[input].received; }

  // InvalidArgument where `chunk` is not the next of its input. `field` is its path in the request.
  absl::Status Check(const IncomingChunk& chunk, absl::string_view field) const;
  // `chunk` has passed Check.
  void Add(const IncomingChunk& chunk);
  // What is missing, `what` having said that no more comes. Not complete.
  absl::Status Missing(absl::string_view what) const;

 private:
  struct Input {
    uint64_t bytes = 0;
    uint64_t buffer_bytes = 0;  // up to 3 more, which the last chunk may have
    uint64_t received = 0;
  };

  absl::string_view operator_name_;
  std::vector<Input> inputs_;
  uint64_t bytes_ = 0;
  uint64_t received_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_UPLOAD_H_
