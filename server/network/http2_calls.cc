#include "server/network/http2_calls.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <utility>

namespace opmill {
namespace {

constexpr size_t kPrefaceBytes = 24;
constexpr uint32_t kPriorityBytes = 5;
constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kRstStream = 3;
constexpr uint8_t kSettings = 4;
constexpr uint8_t kPing = 6;
constexpr uint8_t kContinuation = 9;
constexpr uint8_t kAck = 1;
constexpr uint8_t kEndHeaders = 4;
constexpr uint8_t kPriority = 0x20;
// The overhead per field that HTTP/2 counts (RFC 9113, 6.5.2).
constexpr uint64_t kBytesBesideField = 32;
// The overhead that gRPC and its application have: 16,000 fields of two bytes take 1.4 MB, and as
// much again when the call begins.
constexpr uint64_t kMemoryBesideField = 192;

uint32_t ReadUint32(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

absl::string_view View(const uint8_t* bytes, size_t count) {
  return {reinterpret_cast<const char*>(bytes), count};
}

nghttp2_hd_inflater* NewInflater() {
  nghttp2_hd_inflater* inflater = nullptr;
  nghttp2_hd_inflate_new(&inflater);
  return inflater;
}

}  // namespace

void Http2Calls::FreeInflater::operator()(nghttp2_hd_inflater* inflater) const {
  nghttp2_hd_inflate_del(inflater);
}

Http2Calls::Http2Calls(MessageLimit limit_of)
    : limit_of_(std::move(limit_of)), inflater_(NewInflater()), preface_left_(kPrefaceBytes) {}

Http2Calls::~Http2Calls() = default;

bool Http2Calls::ends_headers() const { return (flags_ & kEndHeaders) != 0; }

Http2Calls::Step Http2Calls::Read(absl::Span<const uint8_t> bytes) {
  const size_t of_preface = std::min(preface_left_, bytes.size());
  preface_left_ -= of_preface;
  size_t consumed = of_preface;
  while (consumed < bytes.size()) {
    Step step;
    if (header_bytes_ < header_.size()) {
      const size_t count = std::min(header_.size() - header_bytes_, bytes.size() - consumed);
      std::copy_n(bytes.data() + consumed, count, header_.data() + header_bytes_);
      header_bytes_ += count;
      step.consumed = count;
      if (header_bytes_ == header_.size()) {
        step = BeginFrame();
        step.consumed = count;
      }
    } else {
      step = ReadPayload(bytes.subspan(consumed, payload_left_));
      payload_left_ -= static_cast<uint32_t>(step.consumed);
    }
    if (header_bytes_ == header_.size() && payload_left_ == 0) header_bytes_ = 0;
    consumed += step.consumed;
    if (step.event != Event::kNone) {
      step.consumed = consumed;
      return step;
    }
  }
  return {.consumed = consumed};
}

Http2Calls::Step Http2Calls::BeginFrame() {
  payload_left_ = ReadUint32(header_.data()) >> 8;
  type_ = header_[3];
  flags_ = header_[4];
  stream_ = ReadUint32(header_.data() + 5) & 0x7FFF'FFFF;
  priority_left_ = 0;
  if (in_block_ != (type_ == kContinuation)) return {.event = Event::kInvalid};
  if ((type_ == kSettings || type_ == kPing) && (flags_ & kAck) == 0) ++control_frames_;
  if (type_ == kRstStream && open_.contains(stream_)) {
    return {.event = Event::kReset, .stream = stream_};
  }
  if (type_ == kHeaders) {
    if ((flags_ & kPriority) != 0) priority_left_ = kPriorityBytes;
    in_block_ = true;
    block_bytes_ = 0;
    metadata_bytes_ = 0;
    limit_.reset();
    // The transport ignores the fields of other streams, except for the trailers of open calls.
    begins_call_ = stream_ > last_stream_ && stream_ % 2 == 1;
  }
  Step step;
  if (in_block_ && payload_left_ == 0 && ends_headers()) step = ReadFields({}, /*is_last=*/true);
  if (type_ != kHeaders || !begins_call_) return step;
  last_stream_ = stream_;
  open_[stream_].limit = limit_of_("");
  return {.event = Event::kCall, .stream = stream_};
}

Http2Calls::Step Http2Calls::ReadPayload(absl::Span<const uint8_t> bytes) {
  Step step;
  if (in_block_) {
    const size_t of_priority = std::min<size_t>(priority_left_, bytes.size());
    priority_left_ -= static_cast<uint32_t>(of_priority);
    step = ReadFields(bytes.subspan(of_priority),
                      /*is_last=*/ends_headers() && bytes.size() == payload_left_);
  } else if (type_ == kData) {
    if (const auto call = open_.find(stream_); call != open_.end()) {
      return ReadMessages(bytes, stream_, call->second);
    }
  }
  step.consumed = bytes.size();
  return step;
}

Http2Calls::Step Http2Calls::ReadFields(absl::Span<const uint8_t> bytes, bool is_last) {
  uint64_t memory_bytes = 0;
  block_bytes_ += bytes.size();
  for (;;) {
    nghttp2_nv field = {};
    int flags = 0;
    const ssize_t count = nghttp2_hd_inflate_hd2(inflater_.get(), &field, &flags, bytes.data(),
                                                 bytes.size(), is_last ? 1 : 0);
    if (count < 0) return {.event = Event::kInvalid};
    bytes.remove_prefix(static_cast<size_t>(count));
    const bool is_complete = (flags & NGHTTP2_HD_INFLATE_EMIT) != 0;
    if (is_complete) {
      metadata_bytes_ += field.namelen + field.valuelen + kBytesBesideField;
      memory_bytes += field.namelen + field.valuelen + kMemoryBesideField;
      if (View(field.name, field.namelen) == ":path") {
        const uint32_t limit = limit_of_(View(field.value, field.valuelen));
        limit_ = std::min(limit_.value_or(limit), limit);
      }
    }
    if (std::max(metadata_bytes_, block_bytes_) > kMostMetadataBytes) {
      return {.event = Event::kTooMuchMetadata, .stream = stream_};
    }
    if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) nghttp2_hd_inflate_end_headers(inflater_.get());
    if (!is_complete && bytes.empty()) break;
  }
  const auto call = open_.find(stream_);
  if (is_last) {
    in_block_ = false;
    if (begins_call_ && call != open_.end() && limit_.has_value()) call->second.limit = *limit_;
  }
  if (memory_bytes == 0 || call == open_.end()) return {};
  return {.event = Event::kMetadata, .stream = stream_, .bytes = memory_bytes};
}

Http2Calls::Step Http2Calls::ReadMessages(absl::Span<const uint8_t> bytes, uint32_t stream,
                                          Call& call) {
  if (call.is_refused) return {.consumed = bytes.size()};
  size_t at = 0;
  while (at < bytes.size()) {
    if (call.message_left > 0) {
      const uint64_t count = std::min<uint64_t>(call.message_left, bytes.size() - at);
      call.message_left -= count;
      at += count;
      continue;
    }
    call.prefix[call.prefix_bytes++] = bytes[at++];
    if (call.prefix_bytes < call.prefix.size()) continue;
    call.prefix_bytes = 0;
    call.message_left = ReadUint32(call.prefix.data() + 1);
    if (call.message_left > call.limit) {
      call.is_refused = true;
      return {.event = Event::kLongMessage,
              .consumed = at,
              .stream = stream,
              .bytes = call.message_left,
              .limit = call.limit};
    }
  }
  return {.consumed = at};
}

}  // namespace opmill
