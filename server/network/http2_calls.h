// Follows the calls of one HTTP/2 connection in the bytes that its peer sends.
#ifndef OPMILL_SERVER_NETWORK_HTTP2_CALLS_H_
#define OPMILL_SERVER_NETWORK_HTTP2_CALLS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

struct nghttp2_hd_inflater;

namespace opmill {

// The longest message that a method takes, by its path.
using MessageLimit = std::function<uint32_t(absl::string_view path)>;

// Reports what matters to the limits on calls, before the transport sees the bytes. Everything else
// is left to the transport, errors of the protocol included. Not thread-safe.
class Http2Calls {
 public:
  enum class Event {
    kNone,         // all bytes are consumed
    kCall,         // a call begins
    kMetadata,     // header fields of a call have arrived
    kLongMessage,  // the announced message is longer than its method takes; reported once per call
    kReset,        // the peer has reset a call
    kTooMuchMetadata,
    kInvalid,  // a header block that cannot be decoded
  };
  struct Step {
    Event event = Event::kNone;
    size_t consumed = 0;  // the bytes up to the event
    uint32_t stream = 0;
    uint64_t bytes = 0;  // of the metadata as it is kept in memory, or of the message
    uint32_t limit = 0;  // on the message
  };

  // Metadata as HTTP/2 counts it, with 32 bytes in addition for each field.
  static constexpr uint64_t kMostMetadataBytes = uint64_t{64} << 10;

  explicit Http2Calls(MessageLimit limit_of);
  ~Http2Calls();

  // Reads up to the next event. After kTooMuchMetadata and kInvalid it must not be called again.
  Step Read(absl::Span<const uint8_t> bytes);
  // The call has ended: the rest of its bytes is of no interest.
  void Forget(uint32_t stream) { open_.erase(stream); }

  // The frames so far that the transport answers without a call: SETTINGS and PING.
  uint64_t control_frames() const { return control_frames_; }

 private:
  struct Call {
    uint32_t limit = 0;
    bool is_refused = false;
    // The prefix of a message, and what is left of it.
    std::array<uint8_t, 5> prefix = {};
    size_t prefix_bytes = 0;
    uint64_t message_left = 0;
  };
  struct FreeInflater {
    void operator()(nghttp2_hd_inflater* inflater) const;
  };

  bool ends_headers() const;
  Step BeginFrame();
  Step ReadPayload(absl::Span<const uint8_t> bytes);
  // `is_last`: the block ends with these bytes.
  Step ReadFields(absl::Span<const uint8_t> bytes, bool is_last);
  static Step ReadMessages(absl::Span<const uint8_t> bytes, uint32_t stream, Call& call);

  const MessageLimit limit_of_;
  const std::unique_ptr<nghttp2_hd_inflater, FreeInflater> inflater_;
  absl::flat_hash_map<uint32_t, Call> open_;
  uint32_t last_stream_ = 0;
  uint64_t control_frames_ = 0;
  size_t preface_left_;  // bytes of the connection preface

  // The current frame.
  std::array<uint8_t, 9> header_ = {};
  size_t header_bytes_ = 0;
  uint32_t payload_left_ = 0;
  uint32_t priority_left_ = 0;  // bytes of the payload before the fields
  uint8_t type_ = 0;
  uint8_t flags_ = 0;
  uint32_t stream_ = 0;

  // The current header block, of one or more frames.
  bool in_block_ = false;
  bool begins_call_ = false;
  uint64_t block_bytes_ = 0;  // on the wire
  uint64_t metadata_bytes_ = 0;
  std::optional<uint32_t> limit_;  // of the paths so far
};

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_HTTP2_CALLS_H_
