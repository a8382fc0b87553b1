// The limit on the bytes of inputs and outputs in flight.
#ifndef OPMILL_SERVER_EXECUTION_MEMORY_BUDGET_H_
#define OPMILL_SERVER_EXECUTION_MEMORY_BUDGET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/execution/shared_limit.h"

namespace opmill {

// Thread-safe.
class MemoryBudget {
 public:
  // A share of the budget, returned by its destructor. It may outlive the budget, because the
  // device and the transport release a buffer slightly after they have reported that they are done.
  class Share {
   public:
    Share() = default;
    Share(std::shared_ptr<SharedLimit> limit, std::shared_ptr<Holding> holding, uint64_t bytes)
        : limit_(std::move(limit)), holding_(std::move(holding)), bytes_(bytes) {}
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept {
      std::swap(limit_, other.limit_);
      std::swap(holding_, other.holding_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (limit_ != nullptr) limit_->Return(*holding_, bytes_);
    }

   private:
    std::shared_ptr<SharedLimit> limit_;
    std::shared_ptr<Holding> holding_;
    uint64_t bytes_ = 0;
  };

  // `name` is that of the limit, for errors.
  explicit MemoryBudget(uint64_t limit, std::string name = "max_bytes_in_flight")
      : limit_(std::make_shared<SharedLimit>(limit)), name_(std::move(name)) {}

  // Takes bytes for the caller whose bytes `holding` counts, if at most `up_to` bytes are in use
  // afterwards. Otherwise returns ResourceExhausted with a retry delay.
  absl::StatusOr<Share> Take(uint64_t bytes, std::shared_ptr<Holding> holding, uint64_t up_to);
  // Takes bytes that count for no caller.
  absl::StatusOr<Share> Take(uint64_t bytes) {
    return Take(bytes, std::make_shared<Holding>(), limit());
  }

  const SharedLimit& shared() const { return *limit_; }
  uint64_t limit() const { return limit_->limit(); }
  uint64_t used() const { return limit_->used(); }

 private:
  const std::shared_ptr<SharedLimit> limit_;
  const std::string name_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_MEMORY_BUDGET_H_
