// Tracks how much of an execution's inputs has arrived, whether a chunk is the next one of its
// input, and whether the caller has to send more.
#ifndef OPMILL_SERVER_EXECUTION_UPLOAD_H_
#define OPMILL_SERVER_EXECUTION_UPLOAD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/program/program.h"
#include "proto/payload.h"
#include "server/execution/input_source.h"

namespace opmill {

// The chunks of one input must arrive in order; chunks of different inputs may be interleaved. Not
// thread-safe. Sees sizes only, not bytes.
class Upload {
 public:
  // Inputs that the server reads arrive as one chunk, and resident ones are there.
  explicit Upload(const Program& program, absl::Span<const InputSource> sources = {});

  uint64_t bytes() const { return bytes_; }        // of all inputs, without padding
  uint64_t received() const { return received_; }  // of these bytes
  bool complete() const { return received_ == bytes_; }
  // True while bytes are missing that the caller sends.
  bool awaits_chunks() const { return missing_chunk_bytes_ > 0; }
  // The offset at which the next chunk of that input must start.
  uint64_t received(size_t input) const { return inputs_[input].received; }

  // Returns InvalidArgument if `chunk` is not the next one of its input. `field` is its path in the
  // request.
  absl::Status Check(const IncomingChunk& chunk, absl::string_view field) const;
  // `chunk` must have passed Check, unless there are no inputs.
  void Add(const IncomingChunk& chunk);
  // The error for missing chunks; `what` says why no more are expected. Must await some.
  absl::Status Missing(absl::string_view what) const;

 private:
  struct Input {
    uint64_t bytes = 0;
    uint64_t buffer_bytes = 0;  // up to 3 bytes more; the last chunk may include them
    bool is_read = false;       // by the server
    uint64_t received = 0;
  };

  absl::string_view name_;
  std::vector<Input> inputs_;
  uint64_t bytes_ = 0;
  uint64_t received_ = 0;
  uint64_t missing_chunk_bytes_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_UPLOAD_H_
