#include "server/http/http_body.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace opmill {

struct HttpBody::Block {
  std::unique_ptr<char[]> bytes;
  Share share;
};

absl::Span<char> HttpBody::Prepare(size_t expected) {
  if (blocks_.empty() || used_.back() == blocks_.back().size()) {
    constexpr size_t kLeastBytes = 1024;
    const size_t size = std::clamp(expected, kLeastBytes, kBlockBytes);
    auto block =
        std::make_unique<Block>(Block{std::make_unique_for_overwrite<char[]>(size), share_});
    char* const bytes = block->bytes.get();
    blocks_.emplace_back(
        bytes, size, [](void* owner) { delete static_cast<Block*>(owner); }, block.release());
    used_.push_back(0);
  }
  const grpc::Slice& last = blocks_.back();
  char* const begin = reinterpret_cast<char*>(const_cast<uint8_t*>(last.begin()));
  return absl::MakeSpan(begin + used_.back(), last.size() - used_.back());
}

void HttpBody::Commit(size_t bytes) {
  used_.back() += bytes;
  size_ += bytes;
}

void HttpBody::Append(absl::string_view bytes) {
  while (!bytes.empty()) {
    const absl::Span<char> to = Prepare(bytes.size());
    const size_t count = std::min(to.size(), bytes.size());
    std::memcpy(to.data(), bytes.data(), count);
    Commit(count);
    bytes.remove_prefix(count);
  }
}

void HttpBody::CopyTo(size_t offset, size_t size, char* target) const {
  for (const grpc::Slice& part : Slices(offset, size)) {
    target = std::copy(part.begin(), part.end(), target);
  }
}

std::vector<grpc::Slice> HttpBody::Slices(size_t offset, size_t size) const {
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; size > 0; ++i) {
    if (offset >= used_[i]) {
      offset -= used_[i];
      continue;
    }
    const size_t count = std::min(size, used_[i] - offset);
    slices.push_back(blocks_[i].sub(offset, offset + count));
    size -= count;
    offset = 0;
  }
  return slices;
}

void HttpBody::Clear() {
  blocks_.clear();
  used_.clear();
  size_ = 0;
}

}  // namespace opmill
