// A limit on the bytes that objects hold together.
#ifndef OPMILL_KERNELS_BASE_BYTE_BUDGET_H_
#define OPMILL_KERNELS_BASE_BYTE_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace opmill {

// Thread-safe. Example:
//
//   ByteShare share(budget);
//   RETURN_IF_ERROR(share.Grow(bytes));  // its destructor returns them
class ByteBudget {
 public:
  // `name` is that of the limit, for errors. What is taken counts in `parent` too, if there is one.
  ByteBudget(uint64_t limit, std::string name, std::shared_ptr<ByteBudget> parent = nullptr)
      : limit_(limit), name_(std::move(name)), parent_(std::move(parent)) {}

  // Is called without a lock when bytes that could fit do not, until it returns false: it has freed
  // nothing. To be set before the budget is used.
  void SetMakeRoom(std::function<bool()> make_room) { make_room_ = std::move(make_room); }

  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  // "5 of 8 bytes (max_model_bytes) are in use"
  std::string Use() const;

 private:
  friend class ByteShare;
  // ResourceExhausted, with no effect, if more than the limit would be in use.
  absl::Status Take(uint64_t bytes);
  absl::Status TakeOwn(uint64_t bytes);
  void Return(uint64_t bytes);

  const uint64_t limit_;
  const std::string name_;
  const std::shared_ptr<ByteBudget> parent_;
  std::function<bool()> make_room_;
  std::atomic<uint64_t> used_ = 0;
};

// What one object holds. Not thread-safe.
class ByteShare {
 public:
  // Of no budget: any size is free.
  explicit ByteShare(std::shared_ptr<ByteBudget> budget) : budget_(std::move(budget)) {}
  ~ByteShare();
  ByteShare(const ByteShare&) = delete;
  ByteShare& operator=(const ByteShare&) = delete;

  uint64_t bytes() const { return bytes_; }
  // An error, with no effect, if the budget has no room.
  absl::Status Grow(uint64_t by);
  void ShrinkTo(uint64_t bytes);
  // Takes what the other one of the same budget has.
  void Add(ByteShare& other) { bytes_ += std::exchange(other.bytes_, 0); }

 private:
  const std::shared_ptr<ByteBudget> budget_;
  uint64_t bytes_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_BYTE_BUDGET_H_
