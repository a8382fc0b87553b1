// What ModelStatistics reports of one model.
#ifndef OPMILL_SERVER_MODELS_MODEL_STATISTICS_H_
#define OPMILL_SERVER_MODELS_MODEL_STATISTICS_H_

#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "inference/grpc_service.pb.h"
#include "server/observe/statistics.h"

namespace opmill {

// Thread-safe. An inference counts in all parts at once, before its response is sent.
class ModelStatistics {
 public:
  // `total`: from its begin; `rows`: of its batch.
  void AddSuccess(const StageTimes& times, absl::Duration total, uint64_t rows)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A run, which may be of several inferences.
  void AddExecution(uint64_t rows, absl::Duration compute) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddFailure(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);

  // Everything but name and version.
  void Encode(inference::ModelStatistics& to) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  inference::ModelStatistics counts_ ABSL_GUARDED_BY(mutex_);  // without batches
  std::map<uint64_t, inference::InferBatchStatistics> batches_ ABSL_GUARDED_BY(mutex_);  // by rows
};

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_MODEL_STATISTICS_H_
