#include "client/output_receiver.h"

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"

namespace opmill {

absl::Status OutputReceiver::Start(const v1::ExecutionStarted& started) {
  if (is_started_) return absl::InternalError("The server announced an execution's outputs twice.");
  if (started.outputs_size() != started.output_bytes_size()) {
    return absl::InternalError(absl::StrCat("The server announced ", started.outputs_size(),
                                            " outputs, but the sizes of ",
                                            started.output_bytes_size(), "."));
  }
  is_started_ = true;
  output_bytes_.assign(started.output_bytes().begin(), started.output_bytes().end());
  received_bytes_.assign(output_bytes_.size(), 0);
  return sink_.Start(started);
}

absl::Status OutputReceiver::Write(const std::vector<IncomingChunk>& chunks) {
  for (const IncomingChunk& chunk : chunks) {
    if (chunk.tensor_index >= output_bytes_.size()) {
      return absl::InternalError(absl::StrCat("The server sent bytes of output ",
                                              chunk.tensor_index, " of ", output_bytes_.size(),
                                              "."));
    }
    uint64_t& received = received_bytes_[chunk.tensor_index];
    const uint64_t expected = output_bytes_[chunk.tensor_index];
    if (chunk.offset != received || chunk.data.size() > expected - received) {
      return absl::InternalError(absl::StrCat(
          "The server sent ", chunk.data.size(), " bytes at offset ", chunk.offset, " of output ",
          chunk.tensor_index, ", of which ", received, " of ", expected, " bytes had arrived."));
    }
    RETURN_IF_ERROR(sink_.Write(chunk.tensor_index, chunk.offset, chunk.data));
    received += chunk.data.size();
  }
  return absl::OkStatus();
}

absl::Status OutputReceiver::End() const {
  if (!is_started_) {
    return absl::InternalError("The server ended an execution without announcing its outputs.");
  }
  for (size_t i = 0; i < output_bytes_.size(); ++i) {
    if (received_bytes_[i] == output_bytes_[i]) continue;
    return absl::InternalError(absl::StrCat("The server ended an execution after ",
                                            received_bytes_[i], " of the ", output_bytes_[i],
                                            " bytes of output ", i, "."));
  }
  return absl::OkStatus();
}

}  // namespace opmill
