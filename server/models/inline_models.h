// The ONNX models that callers have sent in their requests.
#ifndef OPMILL_SERVER_MODELS_INLINE_MODELS_H_
#define OPMILL_SERVER_MODELS_INLINE_MODELS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "kernels/base/byte_budget.h"
#include "kernels/onnx/model.h"
#include "proto/payload.h"
#include "server/models/model.h"

namespace opmill {

struct InlineModelLimits {
  uint32_t models = 0;  // that are kept
  // The budget is that of all of them, of files that are being read, and of programs that are kept.
  onnx::ModelLimits each;
};

struct InlineModelCounts {
  uint64_t models = 0;
  uint64_t bytes = 0;
  uint64_t reads = 0;
  uint64_t evictions = 0;
};

// Models by the SHA-256 of their files, as text. The least recently used one makes room for others.
// Those that are dropped but still in use count until their requests have ended. Thread-safe.
class InlineModels {
 public:
  explicit InlineModels(const InlineModelLimits& limits);
  InlineModels(const InlineModels&) = delete;
  InlineModels& operator=(const InlineModels&) = delete;

  // NotFound with the reason MODEL_FILE_NEEDED if it is not kept.
  absl::StatusOr<std::shared_ptr<const Model>> Find(absl::string_view sha256)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads the file, which must have this SHA-256, and keeps its model. May take seconds; Cancelled
  // after a stop of `abandoned`.
  absl::StatusOr<std::shared_ptr<const Model>> Read(const std::string& sha256, const Payload& file,
                                                    const std::stop_token& abandoned)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Of a model with this SHA-256.
  static std::string NameOf(absl::string_view sha256);

  // Drops the model that has not been used for the longest time. False if there is none.
  bool DropOldest() ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<std::shared_ptr<const Model>> All() const ABSL_LOCKS_EXCLUDED(mutex_);
  InlineModelCounts counts() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    std::string sha256;
    std::shared_ptr<const Model> model;
  };

  // The end if it is not kept.
  std::list<Entry>::iterator FindKept(absl::string_view sha256)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<const Model>> ReadNew(const std::string& sha256,
                                                       const Payload& file, ByteShare& reading,
                                                       const std::stop_token& abandoned);
  std::shared_ptr<const Model> TakeOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const InlineModelLimits limits_;
  mutable absl::Mutex mutex_;
  std::list<Entry> kept_ ABSL_GUARDED_BY(mutex_);  // the last used first
  InlineModelCounts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_INLINE_MODELS_H_
