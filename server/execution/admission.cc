#include "server/execution/admission.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/base/errors.h"
#include "server/status/retry_delay.h"

namespace opmill {
namespace {

constexpr uint64_t kMaxWaitingCompilations = 256;

absl::Status Later(const std::string& sentence) {
  return WithRetryDelay(absl::ResourceExhaustedError(sentence), kUsualRetryDelay);
}

std::string Needs(const BufferSizes& sizes) {
  return absl::StrCat("The execution needs ", sizes.total(), " bytes for its ",
                      sizes.is_incremental ? "outputs and for computing while its input arrives"
                                           : "inputs and outputs");
}

// The end of a sentence about a limit of which this caller has only a part.
std::string ForOthers(uint64_t limit, uint64_t up_to) {
  if (up_to >= limit) return "";
  return absl::StrCat(", or has the last ", limit - up_to, " free for other callers");
}

}  // namespace

absl::Status Draining() {
  return absl::UnavailableError(
      "The server is draining: it ends what it has begun and takes nothing new.");
}

absl::Status Admission::CheckExecution(const BufferSizes& sizes, absl::Duration time_left,
                                       const Load& load) const {
  if (load.draining) return Draining();
  if (time_left <= absl::ZeroDuration()) {
    return absl::DeadlineExceededError("The execution's time is over before it could begin.");
  }
  RETURN_IF_ERROR(CheckSizes(sizes));
  RETURN_IF_ERROR(CheckMemory(load));
  const uint64_t max_queued = load.max_queued.value_or(limits_.max_queued);
  if (load.queued < max_queued) return absl::OkStatus();
  return Later(absl::StrCat("The server has ", limits_.max_queued,
                            " executions (max_queued) waiting for the device",
                            ForOthers(limits_.max_queued, max_queued), "."));
}

absl::Status Admission::CheckCaller(const BufferSizes& wanted, uint64_t executions,
                                    uint64_t bytes) const {
  const CallerLimits& caller = limits_.caller;
  if (caller.executions != 0 && executions >= caller.executions) {
    return Later(absl::StrCat("The caller has ", executions, " executions under way, of ",
                              caller.executions, " (caller_limits, executions)."));
  }
  if (caller.bytes == 0) return absl::OkStatus();
  if (wanted.total() > caller.bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(Needs(wanted), ", more than ", caller.bytes, " (caller_limits, bytes)."));
  }
  if (bytes <= caller.bytes - wanted.total()) return absl::OkStatus();
  return Later(absl::StrCat(Needs(wanted), ", and the caller has ", bytes, " of ", caller.bytes,
                            " (caller_limits, bytes) in use."));
}

absl::Status Admission::NoPlaceForExecution(uint64_t up_to) const {
  return Later(absl::StrCat("The server has ", limits_.max_executions,
                            " executions (max_executions) under way",
                            ForOthers(limits_.max_executions, up_to), "."));
}

absl::Status Admission::NoPlaceForStream(uint64_t up_to) const {
  return WithRetryDelay(
      absl::ResourceExhaustedError(absl::StrCat("The server has ", limits_.max_streams,
                                                " ExecuteStream calls (max_streams) open",
                                                ForOthers(limits_.max_streams, up_to), ".")),
      absl::Seconds(1));
}

absl::Status Admission::TooFast(absl::Duration wait) const {
  return WithRetryDelay(
      absl::ResourceExhaustedError(absl::StrCat("The caller begins more than ", limits_.caller.rate,
                                                " executions per second (caller_limits, rate).")),
      std::max(wait, absl::Milliseconds(1)));
}

absl::Status Admission::CheckCompilation(const BufferSizes& sizes, const Load& load) const {
  if (load.draining) return Draining();
  RETURN_IF_ERROR(CheckSizes(sizes));
  RETURN_IF_ERROR(CheckMemory(load));
  if (load.compilations < kMaxWaitingCompilations) return absl::OkStatus();
  return Later(absl::StrCat(kMaxWaitingCompilations, " CompileOperator calls wait already."));
}

absl::Status Admission::OutOfMemory(absl::Status status, uint64_t other_executions) {
  if (other_executions == 0) return status;
  return WithRetryDelay(std::move(status), kUsualRetryDelay);
}

absl::Status Admission::Displaced(Displacement why) {
  absl::string_view reason;
  switch (why) {
    case Displacement::kNoInput:
      reason = "for which no input came";
      break;
    case Displacement::kSlowInput:
      reason = "whose caller sends less than 1 MiB per second";
      break;
    case Displacement::kUnreadResults:
      reason = "whose results were not read";
      break;
  }
  return Later(absl::StrCat("The server is full, and gave the room of this execution, ", reason,
                            ", to another."));
}

absl::Status Admission::CheckSizes(const BufferSizes& sizes) const {
  if (sizes.largest_tensor > limits_.max_tensor_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("A tensor of ", sizes.largest_tensor,
                                                     " bytes is larger than max_tensor_bytes (",
                                                     limits_.max_tensor_bytes, ")."));
  }
  if (sizes.total() <= limits_.max_bytes_in_flight) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      Needs(sizes), ", more than max_bytes_in_flight (", limits_.max_bytes_in_flight, ")."));
}

absl::Status Admission::CheckMemory(const Load& load) const {
  if (!load.short_of_memory) return absl::OkStatus();
  return Later(absl::StrCat("The server has taken nearly all of the ", limits_.memory_limit,
                            " bytes (memory_limit) that it may."));
}

}  // namespace opmill
