// A limit that callers share.
#ifndef OPMILL_SERVER_EXECUTION_SHARED_LIMIT_H_
#define OPMILL_SERVER_EXECUTION_SHARED_LIMIT_H_

#include <atomic>
#include <cstdint>

namespace opmill {

// How much one caller has of a limit. Zero if nothing is known about the caller.
struct Holding {
  std::atomic<uint64_t> amount = 0;
};

// Who may take more, of what several callers hold together:
// - A caller alone may take all of it.
// - With other callers, one that holds more than its share (the limit divided by those that hold
//   some of it, at least two) leaves an eighth free, so that others get it, up to their shares.
// - Beyond the limit there is one part in 64 for callers that hold no more than that. Others who
//   arrived first and return nothing can therefore not keep them out.
// Thread-safe, without locks. The decision may be based on numbers that are about to change; the
// limit itself is exact.
class SharedLimit {
 public:
  explicit SharedLimit(uint64_t limit) : limit_(limit) {}

  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

  // How much may be in use in total after `by` has taken `amount` more. `has_others`: the server
  // has other callers now.
  uint64_t LimitFor(const Holding& by, uint64_t amount, bool has_others) const;

  // Whether `of` has more than its share, where `asking` wants some.
  bool ExceedsShare(const Holding& of, const Holding& asking) const;

  // False, with no effect, if more than `up_to` would then be in use.
  bool TryTake(Holding& by, uint64_t amount, uint64_t up_to);
  void Take(Holding& by, uint64_t amount);
  void Return(Holding& by, uint64_t amount);

 private:
  void CountHolder(Holding& by, uint64_t amount);

  const uint64_t limit_;
  std::atomic<uint64_t> used_ = 0;
  std::atomic<uint64_t> holders_ = 0;  // callers that hold some
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_SHARED_LIMIT_H_
