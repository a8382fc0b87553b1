// Limits the length of header blocks. gRPC 1.51 limits each frame of a header block, but not the
// number of frames: an endless block uses about 70 bytes of memory per byte received, and several
// times that when its connection closes. gRPC resolves the symbols of its parser at run time, so
// the BeginFrame in this program replaces gRPC's.
#include <dlfcn.h>

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"

#if GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR == 51

class grpc_metadata_batch;

namespace grpc_core {

// Matches gRPC's src/core/ext/transport/chttp2/transport/hpack_parser.h in names and in how
// arguments are passed.
class HPackParser {
 public:
  enum class Boundary : uint8_t { kNone, kEndOfHeaders, kEndOfStream };
  enum class Priority : uint8_t { kNone, kIncluded };
  struct LogInfo {
    uint32_t stream_id;
    uint8_t type;
    bool is_client;
  };

  ~HPackParser();
  void BeginFrame(grpc_metadata_batch* metadata, uint32_t most_bytes, Boundary boundary,
                  Priority priority, LogInfo log_info);
};

}  // namespace grpc_core

namespace opmill {
namespace {

// Clients fill a frame of 16 KiB before they start another one, and gRPC refuses headers of more
// than 8 KiB.
constexpr int kMostFrames = 2;

// The number of frames so far, for each unfinished block.
class OpenBlocks {
 public:
  int CountFrame(const void* parser, bool is_last) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    const auto found = frames_.try_emplace(parser, 0).first;
    const int count = ++found->second;
    if (is_last) frames_.erase(found);
    return count;
  }
  void Forget(const void* parser) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    frames_.erase(parser);
  }

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<const void*, int> frames_ ABSL_GUARDED_BY(mutex_);
};

OpenBlocks& Blocks() {
  static OpenBlocks& blocks = *new OpenBlocks();
  return blocks;
}

template <typename Function>
Function* NextOf(const char* symbol) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, symbol));
}

}  // namespace
}  // namespace opmill

namespace grpc_core {

HPackParser::~HPackParser() {
  static auto* const next = opmill::NextOf<void(HPackParser*)>("_ZN9grpc_core11HPackParserD1Ev");
  opmill::Blocks().Forget(this);
  next(this);
}

void HPackParser::BeginFrame(grpc_metadata_batch* metadata, uint32_t most_bytes, Boundary boundary,
                             Priority priority, LogInfo log_info) {
  static auto* const next = opmill::NextOf<void(HPackParser*, grpc_metadata_batch*, uint32_t,
                                                Boundary, Priority, LogInfo)>(
      "_ZN9grpc_core11HPackParser10BeginFrameEP19grpc_metadata_batchjNS0_8BoundaryENS0_"
      "8PriorityENS0_7LogInfoE");
  // With no room for more headers, gRPC drops the earlier ones and refuses the call.
  if (opmill::Blocks().CountFrame(this, boundary != Boundary::kNone) > opmill::kMostFrames) {
    most_bytes = 0;
  }
  next(this, metadata, most_bytes, boundary, priority, log_info);
}

}  // namespace grpc_core

#endif
