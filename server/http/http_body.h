// The body of an HTTP request, in memory that gRPC's messages can take over.
#ifndef OPMILL_SERVER_HTTP_HTTP_BODY_H_
#define OPMILL_SERVER_HTTP_HTTP_BODY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/slice.h"
#include "server/execution/memory_budget.h"

namespace opmill {

// Blocks of up to a mebibyte: a body that arrives slowly takes memory as it arrives, and large
// blocks are reused by the allocator instead of being mapped and faulted in anew. Not thread-safe.
class HttpBody {
 public:
  using Share = std::shared_ptr<MemoryBudget::Share>;
  static constexpr size_t kBlockBytes = size_t{1} << 20;

  size_t size() const { return size_; }

  // The share is returned with the last block that was added afterwards.
  void SetShare(Share share) { share_ = std::move(share); }
  const Share& share() const { return share_; }

  // Memory for the next bytes, not empty; `expected` of them are known to follow. Commit adds those
  // that have been written.
  absl::Span<char> Prepare(size_t expected);
  void Commit(size_t bytes);
  void Append(absl::string_view bytes);

  // All of the range must exist.
  void CopyTo(size_t offset, size_t size, char* target) const;
  // Parts of the range, which share its memory.
  std::vector<grpc::Slice> Slices(size_t offset, size_t size) const;
  const std::vector<grpc::Slice>& blocks() const { return blocks_; }
  // Frees everything that no slice shares.
  void Clear();

 private:
  struct Block;

  Share share_;
  std::vector<grpc::Slice> blocks_;
  std::vector<size_t> used_;  // of each block
  size_t size_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_HTTP_HTTP_BODY_H_
