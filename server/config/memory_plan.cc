#include "server/config/memory_plan.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "server/config/byte_size.h"

namespace opmill {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

// docs/operations.md has the measurements.
constexpr uint64_t kProcessBytes = 192 * kMebibyte;
constexpr uint64_t kBytesPerExecution = 4096;
constexpr uint64_t kBytesPerKernel = kMebibyte * 3 / 2;
constexpr uint64_t kLeastKernelBytes = 64 * kMebibyte;
constexpr uint64_t kMostKernelBytes = 1024 * kMebibyte;
constexpr uint64_t kLeastOperatorBytes = 8 * kMebibyte;
constexpr uint64_t kMostOperatorBytes = 256 * kMebibyte;
constexpr uint64_t kMostInlineModelBytes = 1024 * kMebibyte;
// Two of the longest messages may arrive, in addition to what streams send ahead.
constexpr uint64_t kStreamsAheadBytes = 64 * kMebibyte;
constexpr uint64_t kMostTransportBytes = uint64_t{4} << 30;
constexpr uint64_t kLeastBufferBytes = 128 * kMebibyte;

uint64_t OfDefault(uint64_t value, uint64_t otherwise) { return value == 0 ? otherwise : value; }

// By default they take at most `most_bytes`.
absl::Status DivideModels(bool has_repository, uint64_t limit_bytes, uint64_t most_bytes,
                          Limits& limits) {
  const uint64_t inline_bytes =
      limits.max_inline_models == 0
          ? 0
          : OfDefault(limits.max_inline_model_bytes,
                      std::min({limit_bytes / 16, kMostInlineModelBytes, most_bytes}));
  const uint64_t repository_bytes = has_repository ? std::min(limit_bytes / 8, most_bytes) : 0;
  const uint64_t total_bytes =
      OfDefault(limits.max_total_model_bytes, std::max(inline_bytes, repository_bytes));
  limits.max_inline_model_bytes =
      limits.max_inline_model_bytes == 0 ? std::min(inline_bytes, total_bytes) : inline_bytes;
  limits.max_total_model_bytes = total_bytes;
  if (total_bytes > limit_bytes) {
    const bool chose_inline = total_bytes == inline_bytes;
    return absl::InvalidArgumentError(
        absl::StrCat(chose_inline ? "--max_inline_model_bytes" : "--max_total_model_bytes", " is ",
                     FormatBytes(total_bytes), "; it must be below the --memory_limit of ",
                     FormatBytes(limit_bytes), "."));
  }
  if (limits.max_inline_model_bytes <= total_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--max_inline_model_bytes is ", FormatBytes(inline_bytes),
      "; it must be at most the --max_total_model_bytes of ", FormatBytes(total_bytes), "."));
}

}  // namespace

size_t MemoryPlan::live_kernels() const {
  return static_cast<size_t>(kernel_bytes / kBytesPerKernel);
}

absl::StatusOr<MemoryPlan> DivideMemory(uint64_t host_bytes, OptionalParts parts, Limits& limits) {
  limits.memory_limit = OfDefault(limits.memory_limit, host_bytes / 4 * 3);
  MemoryPlan plan = {.limit_bytes = limits.memory_limit};
  plan.process_bytes = kProcessBytes + limits.max_executions * kBytesPerExecution;
  plan.kernel_bytes = std::clamp(plan.limit_bytes / 16, kLeastKernelBytes, kMostKernelBytes);
  plan.operator_bytes = std::clamp(plan.limit_bytes / 32, kLeastOperatorBytes, kMostOperatorBytes);
  const uint64_t least_transport_bytes = 2 * limits.max_message_bytes + kStreamsAheadBytes;
  plan.transport_bytes =
      std::max(std::min(plan.limit_bytes / 8, kMostTransportBytes), least_transport_bytes);
  // A body, and the JSON of another one.
  if (parts.http) {
    plan.http_bytes = std::max(std::min(plan.limit_bytes / 8, kMostTransportBytes),
                               limits.max_message_bytes + kStreamsAheadBytes / 2);
  }
  uint64_t others = plan.process_bytes + plan.kernel_bytes + plan.operator_bytes +
                    plan.transport_bytes + plan.http_bytes;
  const auto left = [&] {
    return plan.limit_bytes - std::min(plan.limit_bytes, others + kLeastBufferBytes);
  };
  RETURN_IF_ERROR(DivideModels(parts.repository, plan.limit_bytes, left() / 4, limits));
  plan.model_bytes = limits.max_total_model_bytes;
  // Compiled programs keep constants and packed weights, about as much as models take.
  plan.operator_bytes += plan.model_bytes;
  others += 2 * plan.model_bytes;
  limits.max_resident_tensor_bytes =
      OfDefault(limits.max_resident_tensor_bytes, std::min(plan.limit_bytes / 16, left() / 2));
  plan.resident_tensor_bytes = limits.max_resident_tensor_bytes;
  if (plan.resident_tensor_bytes > plan.limit_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max_resident_tensor_bytes is ", FormatBytes(plan.resident_tensor_bytes),
        "; it must be below the --memory_limit of ", FormatBytes(plan.limit_bytes), "."));
  }
  others += plan.resident_tensor_bytes;
  if (plan.limit_bytes < others + kLeastBufferBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--memory_limit is ", FormatBytes(plan.limit_bytes), "; it must be at least ",
        FormatBytes(others + kLeastBufferBytes), ": ", FormatBytes(plan.process_bytes),
        " for the process and --max_executions (", limits.max_executions, "), ",
        FormatBytes(plan.kernel_bytes), " for live kernels, ", FormatBytes(plan.operator_bytes),
        " for compiled operators, ",
        plan.model_bytes == 0 ? "" : absl::StrCat(FormatBytes(plan.model_bytes), " for models, "),
        plan.resident_tensor_bytes == 0
            ? ""
            : absl::StrCat(FormatBytes(plan.resident_tensor_bytes), " for tensors that stay, "),
        FormatBytes(plan.transport_bytes), " for messages with a --max_message_bytes of ",
        FormatBytes(limits.max_message_bytes), ", ",
        plan.http_bytes == 0 ? "" : absl::StrCat(FormatBytes(plan.http_bytes), " for HTTP, "),
        "and ", FormatBytes(kLeastBufferBytes), " for tensors."));
  }
  plan.buffer_bytes = plan.limit_bytes - others;

  // Half for tensors and a quarter for scratch. The last quarter is for rounding up the sizes of
  // blocks, and for fragmentation.
  const uint64_t rounding_bytes = plan.buffer_bytes / 4;
  const uint64_t usable_bytes = plan.buffer_bytes - rounding_bytes;
  const bool chose_tensors = limits.max_bytes_in_flight != 0;
  const bool chose_scratch = limits.max_scratch_bytes != 0;
  const uint64_t tensor_bytes =
      OfDefault(limits.max_bytes_in_flight,
                chose_scratch ? usable_bytes - std::min(usable_bytes, limits.max_scratch_bytes)
                              : plan.buffer_bytes / 2);
  const uint64_t scratch_bytes = OfDefault(
      limits.max_scratch_bytes,
      chose_tensors ? usable_bytes - std::min(usable_bytes, tensor_bytes) : plan.buffer_bytes / 4);
  if (tensor_bytes > usable_bytes || scratch_bytes > usable_bytes - tensor_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max_bytes_in_flight is ", FormatBytes(tensor_bytes), " and --max_scratch_bytes ",
        FormatBytes(scratch_bytes), "; together they may be at most ", FormatBytes(usable_bytes),
        " with a --memory_limit of ", FormatBytes(plan.limit_bytes), "."));
  }
  limits.max_bytes_in_flight = tensor_bytes;
  limits.max_scratch_bytes = scratch_bytes;
  return plan;
}

}  // namespace opmill
