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

// Decides which caller may take more of a limit:
// - A caller alone may take all of it.
// - With other callers, one that holds more than its share must leave an eighth of the limit free,
//   so that others get it, up to their shares. A share is the limit divided by the number of
//   callers that hold some of it, at least two.
// - Callers that hold at most a 64th of the limit may exceed it by as much in total. Callers that
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

  // Whether `of` has more than its share, if `asking` counts as a holder too.
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
