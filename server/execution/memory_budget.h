// The limit on the bytes of inputs and outputs in flight.
#ifndef OPMILL_SERVER_EXECUTION_MEMORY_BUDGET_H_
#define OPMILL_SERVER_EXECUTION_MEMORY_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"

namespace opmill {

// Thread-safe.
class MemoryBudget {
 public:
  // A share of the budget, returned by its destructor. It may outlive the budget, because the
  // device and the transport release a buffer slightly after they have reported that they are done.
  class Share {
   public:
    Share() = default;
    Share(std::shared_ptr<std::atomic<uint64_t>> used, uint64_t bytes)
        : used_(std::move(used)), bytes_(bytes) {}
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept {
      std::swap(used_, other.used_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (used_ != nullptr) *used_ -= bytes_;
    }

   private:
    std::shared_ptr<std::atomic<uint64_t>> used_;
    uint64_t bytes_ = 0;
  };

  explicit MemoryBudget(uint64_t limit) : limit_(limit) {}

  // Returns ResourceExhausted with a retry delay if they do not fit now.
  absl::StatusOr<Share> Take(uint64_t bytes);

  uint64_t limit() const { return limit_; }
  uint64_t used() const { return *used_; }

 private:
  const uint64_t limit_;
  const std::shared_ptr<std::atomic<uint64_t>> used_ = std::make_shared<std::atomic<uint64_t>>(0);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_MEMORY_BUDGET_H_
