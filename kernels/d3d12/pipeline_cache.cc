#include "kernels/d3d12/pipeline_cache.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/errors.h"

namespace opmill {

absl::StatusOr<PipelineCache::Pipeline> PipelineCache::Get(const KernelPermutation& kernel) {
  std::shared_ptr<Creation> creation;
  bool is_ours = false;
  {
    absl::MutexLock lock(&mutex_);
    std::shared_ptr<Creation>& entry = creations_[kernel];
    if (entry == nullptr) {
      entry = std::make_shared<Creation>();
      is_ours = true;
    }
    creation = entry;
  }
  if (!is_ours) {
    creation->done.WaitForNotification();
    return creation->result;
  }
  creation->result = Create(kernel);
  if (!creation->result.ok()) {
    absl::MutexLock lock(&mutex_);
    creations_.erase(kernel);
  }
  creation->done.Notify();
  return creation->result;
}

absl::StatusOr<PipelineCache::Pipeline> PipelineCache::Create(const KernelPermutation& kernel) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const std::string> bytecode, shaders_.Get(kernel));
  D3D12_COMPUTE_PIPELINE_STATE_DESC desc = {};
  desc.pRootSignature = root_signature_.Get();
  desc.CS = {bytecode->data(), bytecode->size()};
  Pipeline pipeline;
  RETURN_IF_ERROR(health_->Check(
      device_->CreateComputePipelineState(&desc, __uuidof(ID3D12PipelineState),
                                          reinterpret_cast<void**>(pipeline.GetAddressOf())),
      absl::StrCat("CreateComputePipelineState(", kernel.shader, ", ", kernel.entry, ")")));
  counters_.pipelines_created.fetch_add(1, std::memory_order_relaxed);
  return pipeline;
}

}  // namespace opmill
