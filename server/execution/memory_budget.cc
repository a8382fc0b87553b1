#include "server/execution/memory_budget.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/status/retry_delay.h"

namespace opmill {

absl::StatusOr<MemoryBudget::Share> MemoryBudget::Take(uint64_t bytes,
                                                       std::shared_ptr<Holding> holding,
                                                       uint64_t up_to) {
  if (limit_->TryTake(*holding, bytes, up_to)) return Share(limit_, std::move(holding), bytes);
  std::string sentence =
      absl::StrCat("There is no room for a buffer of ", bytes, " bytes now: ", used(), " of ",
                   limit(), " bytes (", name_, ") are in use");
  if (up_to < limit()) {
    absl::StrAppend(&sentence, ", and the last ", limit() - up_to, " are for other callers");
  }
  return WithRetryDelay(absl::ResourceExhaustedError(absl::StrCat(sentence, ".")),
                        kUsualRetryDelay);
}

}  // namespace opmill
