// Maps kernel permutations to live pipelines. One caller compiles; others that need the same
// pipeline wait for it.
#ifndef OPMILL_KERNELS_D3D12_SHADER_PIPELINE_CACHE_H_
#define OPMILL_KERNELS_D3D12_SHADER_PIPELINE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/types/span.h"
#include "kernels/d3d12/counters.h"
#include "kernels/d3d12/health.h"
#include "kernels/d3d12/platform.h"
#include "kernels/d3d12/shader/shader_library.h"
#include "kernels/plan/plan.h"

namespace opmill {

// Thread-safe. Drivers hold memory for each live pipeline (lavapipe about 1 MiB). Beyond
// `max_pipelines`, pipelines that only the cache references are released, least recently used
// first. A caller must keep its reference while the device may be using the pipeline.
class PipelineCache {
 public:
  using Pipeline = std::shared_ptr<ID3D12PipelineState>;

  // `shaders` and `counters` must outlive the cache.
  PipelineCache(ComPtr<ID3D12Device> device, std::shared_ptr<Health> health,
                ComPtr<ID3D12RootSignature> root_signature, ShaderLibrary& shaders,
                Counters& counters, size_t max_pipelines)
      : device_(std::move(device)),
        health_(std::move(health)),
        root_signature_(std::move(root_signature)),
        shaders_(shaders),
        counters_(counters),
        max_pipelines_(max_pipelines) {}

  // Errors are returned to all waiting callers and are not cached.
  absl::StatusOr<Pipeline> Get(const KernelPermutation& kernel);

  // Creates on all cores those that do not exist. Cancelled after a stop of `abandoned`.
  absl::StatusOr<std::vector<Pipeline>> GetAll(absl::Span<const KernelPermutation> kernels,
                                               const std::stop_token& abandoned);

  // Releases all pipelines that only the cache references.
  void ReleaseUnheld() { Trim(0); }

  size_t size() const;

 private:
  struct Creation {
    absl::Notification done;
    absl::StatusOr<Pipeline> result = absl::UnknownError("The compilation has not ended.");
  };

  struct Entry {
    std::shared_ptr<Creation> creation;
    uint64_t last_use = 0;
  };

  // Null if it does not exist, or is being created.
  Pipeline Find(const KernelPermutation& kernel);
  absl::StatusOr<Pipeline> Create(const KernelPermutation& kernel);
  // Releases unreferenced pipelines until at most `most` are left.
  void Trim(size_t most);

  const ComPtr<ID3D12Device> device_;
  const std::shared_ptr<Health> health_;
  const ComPtr<ID3D12RootSignature> root_signature_;
  ShaderLibrary& shaders_;
  Counters& counters_;
  const size_t max_pipelines_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<KernelPermutation, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;  // counts uses
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_SHADER_PIPELINE_CACHE_H_
