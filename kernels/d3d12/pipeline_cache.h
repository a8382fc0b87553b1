// Kernel permutation -> live pipeline. One caller compiles; the others wait for that one.
#ifndef OPMILL_KERNELS_D3D12_PIPELINE_CACHE_H_
#define OPMILL_KERNELS_D3D12_PIPELINE_CACHE_H_

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "kernels/d3d12/counters.h"
#include "kernels/d3d12/health.h"
#include "kernels/d3d12/platform.h"
#include "kernels/plan.h"
#include "kernels/shader_library.h"

namespace opmill {

// Safe to use from many threads. Keeps every pipeline: permutations are few, shapes are not in
// them.
class PipelineCache {
 public:
  using Pipeline = ComPtr<ID3D12PipelineState>;

  // `shaders` and `counters` outlive the cache.
  PipelineCache(ComPtr<ID3D12Device> device, std::shared_ptr<Health> health,
                ComPtr<ID3D12RootSignature> root_signature, ShaderLibrary& shaders,
                Counters& counters)
      : device_(std::move(device)),
        health_(std::move(health)),
        root_signature_(std::move(root_signature)),
        shaders_(shaders),
        counters_(counters) {}

  // An error goes to all who wait for it and is not kept.
  absl::StatusOr<Pipeline> Get(const KernelPermutation& kernel);

 private:
  struct Creation {
    absl::Notification done;
    absl::StatusOr<Pipeline> result = absl::UnknownError("The compilation has not ended.");
  };

  absl::StatusOr<Pipeline> Create(const KernelPermutation& kernel);

  const ComPtr<ID3D12Device> device_;
  const std::shared_ptr<Health> health_;
  const ComPtr<ID3D12RootSignature> root_signature_;
  ShaderLibrary& shaders_;
  Counters& counters_;
  absl::Mutex mutex_;
  absl::flat_hash_map<KernelPermutation, std::shared_ptr<Creation>> creations_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_PIPELINE_CACHE_H_
