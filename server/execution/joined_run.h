// The buffers of a run that computes several executions at once.
#ifndef OPMILL_SERVER_EXECUTION_JOINED_RUN_H_
#define OPMILL_SERVER_EXECUTION_JOINED_RUN_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/engine/device.h"
#include "server/execution/execution.h"

namespace opmill {

// Whether the compiled program, for this number of rows, computes the execution's rows as the
// execution's own program does, to the bit. It may compute more elements behind those of a row.
bool CanJoin(const Execution& execution, const CompiledProgram& joined, uint32_t rows);

// A member of a joined run, which has begun to run.
struct JoinedMember {
  std::shared_ptr<Execution> execution;
  std::vector<Range> inputs;
};

// Not thread-safe.
class JoinedRun {
 public:
  // Copies the inputs of the members, one after the other, and zeros for the rest of the rows. An
  // input with one row is repeated for each of the member's rows, one that only other members have
  // is filled with ones, and its rows end with zeros if those of other members are longer.
  static absl::StatusOr<std::shared_ptr<JoinedRun>> Create(Device& device,
                                                           const CompiledProgram& compiled,
                                                           uint32_t rows,
                                                           std::vector<JoinedMember> members);

  std::vector<JoinedMember>& members() { return members_; }
  Bindings bindings() const { return bindings_; }
  // Stops when all members have ended.
  std::stop_token abandoned() const { return abandoned_.get_token(); }
  // Output `index` of a member, for when the run has ended: a part of the run's, which it keeps
  // alive, or a copy of the first elements of its rows.
  std::shared_ptr<Buffer> OutputOf(size_t member, size_t index) const;

 private:
  using StopCallback = std::stop_callback<std::function<void()>>;

  JoinedRun(uint32_t rows, std::vector<uint64_t> output_bytes, std::vector<JoinedMember> members)
      : rows_(rows), output_bytes_(std::move(output_bytes)), members_(std::move(members)) {}
  // `bytes` of an input, for all rows of the run.
  void CopyInput(size_t index, uint64_t bytes, absl::Span<std::byte> to) const;
  // Of a tensor that has so many bytes for all rows, those of the member.
  uint64_t BytesOf(const Execution& member, uint64_t bytes) const;
  void WatchMembers();

  const uint32_t rows_;
  const std::vector<uint64_t> output_bytes_;  // without the padding of the buffers

  std::vector<JoinedMember> members_;
  Bindings bindings_;
  std::stop_source abandoned_;
  std::atomic<size_t> left_ = 0;  // members that have not ended
  std::vector<std::unique_ptr<StopCallback>> watched_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_JOINED_RUN_H_
