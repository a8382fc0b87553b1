#include "server/execution/memory_budget.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/execution/retry_delay.h"

namespace opmill {

absl::StatusOr<MemoryBudget::Share> MemoryBudget::Take(uint64_t bytes) {
  uint64_t used = used_->load();
  do {
    if (bytes > limit_ - used) {
      return WithRetryDelay(absl::ResourceExhaustedError(absl::StrCat(
                                "There is no room for a tensor of ", bytes, " bytes now: ", used,
                                " of ", limit_, " bytes (max_bytes_in_flight) are in use.")),
                            absl::Milliseconds(500));
    }
  } while (!used_->compare_exchange_weak(used, used + bytes));
  return Share(used_, bytes);
}

}  // namespace opmill
