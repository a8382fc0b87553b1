// The ONNX models that callers have sent in their requests.
#ifndef OPMILL_SERVER_MODELS_INLINE_MODELS_H_
#define OPMILL_SERVER_MODELS_INLINE_MODELS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "kernels/onnx/model.h"
#include "proto/payload.h"
#include "server/models/model.h"

namespace opmill {

struct InlineModelLimits {
  uint64_t bytes = 0;  // of all models, of files that are being read, and of programs that are kept
  uint32_t models = 0;  // that are kept
  onnx::ModelLimits each;
};

struct InlineModelCounts {
  uint64_t models = 0;
  uint64_t bytes = 0;
  uint64_t reads = 0;
  uint64_t evictions = 0;
};

// Models by the SHA-256 of their files, as text. The least recently used one makes room for others.
// The limit on bytes also counts models that are dropped but still in use; it may be exceeded by
// one program of each model in use, until the next request for one of them. Thread-safe.
class InlineModels {
 public:
  explicit InlineModels(const InlineModelLimits& limits) : limits_(limits) {}

  // NotFound with the reason MODEL_FILE_NEEDED if it is not kept.
  absl::StatusOr<std::shared_ptr<const Model>> Find(absl::string_view sha256)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads the file, which must have this SHA-256, and keeps its model. May take seconds.
  absl::StatusOr<std::shared_ptr<const Model>> Read(const std::string& sha256, const Payload& file)
      ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<std::shared_ptr<const Model>> All() const ABSL_LOCKS_EXCLUDED(mutex_);
  InlineModelCounts counts() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    std::string sha256;
    std::shared_ptr<const Model> model;
    uint64_t file_bytes = 0;  // the nodes of the graph take about as much
  };
  struct Dropped {
    std::weak_ptr<const Model> model;
    uint64_t file_bytes = 0;
  };
  class Reading;

  // The end if it is not kept.
  std::list<Entry>::iterator FindKept(absl::string_view sha256)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops models until `more` bytes fit, for a model that then takes `bytes`.
  absl::Status MakeRoom(uint64_t bytes, uint64_t more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropLast() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t BytesInUse() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const InlineModelLimits limits_;
  mutable absl::Mutex mutex_;
  std::list<Entry> kept_ ABSL_GUARDED_BY(mutex_);  // the last used first
  std::vector<Dropped> dropped_ ABSL_GUARDED_BY(mutex_);
  uint64_t reading_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  InlineModelCounts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_INLINE_MODELS_H_
