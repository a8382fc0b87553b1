#include "server/execution/admission.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "server/execution/retry_delay.h"

namespace opmill {
namespace {

constexpr uint64_t kMaxWaitingCompilations = 256;
constexpr absl::Duration kRetryDelay = absl::Milliseconds(500);

absl::Status Later(const std::string& sentence) {
  return WithRetryDelay(absl::ResourceExhaustedError(sentence), kRetryDelay);
}

}  // namespace

absl::Status Draining() {
  return absl::UnavailableError(
      "The server is draining: it ends what it has begun and takes nothing new.");
}

absl::Status Admission::CheckExecution(const std::vector<TensorDesc>& inputs,
                                       const std::vector<TensorDesc>& outputs,
                                       absl::Duration time_left, const Load& load) const {
  if (load.draining) return Draining();
  if (time_left <= absl::ZeroDuration()) {
    return absl::DeadlineExceededError("The execution's time is over before it could begin.");
  }
  RETURN_IF_ERROR(CheckSizes(inputs, outputs));
  RETURN_IF_ERROR(CheckMemory(load));
  if (load.queued < limits_.max_queued) return absl::OkStatus();
  return Later(absl::StrCat("The server has ", limits_.max_queued,
                            " executions (max_queued) waiting for the device."));
}

absl::Status Admission::CheckPlace(uint64_t other_executions) const {
  if (other_executions < limits_.max_executions) return absl::OkStatus();
  return Later(absl::StrCat("The server has ", limits_.max_executions,
                            " executions (max_executions) under way."));
}

absl::Status Admission::CheckCompilation(const std::vector<TensorDesc>& inputs,
                                         const std::vector<TensorDesc>& outputs,
                                         const Load& load) const {
  if (load.draining) return Draining();
  RETURN_IF_ERROR(CheckSizes(inputs, outputs));
  RETURN_IF_ERROR(CheckMemory(load));
  if (load.compilations < kMaxWaitingCompilations) return absl::OkStatus();
  return Later(absl::StrCat(kMaxWaitingCompilations, " CompileOperator calls wait already."));
}

absl::Status Admission::OutOfMemory(absl::Status status, uint64_t other_executions) {
  if (other_executions == 0) return status;
  return WithRetryDelay(std::move(status), kRetryDelay);
}

absl::Status Admission::Displaced() {
  return Later(
      "The server is full, and gave the room of this execution, for which no input came, to "
      "another.");
}

absl::Status Admission::CheckSizes(const std::vector<TensorDesc>& inputs,
                                   const std::vector<TensorDesc>& outputs) const {
  uint64_t total = 0;
  uint64_t largest = 0;
  for (const std::vector<TensorDesc>* const tensors : {&inputs, &outputs}) {
    for (const TensorDesc& tensor : *tensors) {
      const uint64_t bytes = RequiredBytes(tensor);
      total += bytes;
      largest = std::max(largest, bytes);
    }
  }
  if (largest > limits_.max_tensor_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("A tensor of ", largest,
                                                     " bytes is larger than max_tensor_bytes (",
                                                     limits_.max_tensor_bytes, ")."));
  }
  if (total <= limits_.max_bytes_in_flight) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("The execution needs ", total,
                                                   " bytes for its inputs and outputs, more than "
                                                   "max_bytes_in_flight (",
                                                   limits_.max_bytes_in_flight, ")."));
}

absl::Status Admission::CheckMemory(const Load& load) const {
  if (!load.short_of_memory) return absl::OkStatus();
  return Later(absl::StrCat("The server has taken nearly all of the ", limits_.memory_limit,
                            " bytes (memory_limit) that it may."));
}

}  // namespace opmill
