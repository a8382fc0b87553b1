#include "kernels/d3d12/shader/pipeline_cache.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/on_all_cores.h"

namespace opmill {

absl::StatusOr<PipelineCache::Pipeline> PipelineCache::Get(const KernelPermutation& kernel) {
  std::shared_ptr<Creation> creation;
  bool is_ours = false;
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = entries_[kernel];
    if (entry.creation == nullptr) {
      entry.creation = std::make_shared<Creation>();
      is_ours = true;
    }
    entry.last_use = ++clock_;
    creation = entry.creation;
  }
  if (!is_ours) {
    creation->done.WaitForNotification();
    return creation->result;
  }
  creation->result = Create(kernel);
  if (!creation->result.ok()) {
    absl::MutexLock lock(&mutex_);
    entries_.erase(kernel);
  }
  creation->done.Notify();
  Trim(max_pipelines_);
  return creation->result;
}

absl::StatusOr<std::vector<PipelineCache::Pipeline>> PipelineCache::GetAll(
    absl::Span<const KernelPermutation> kernels, const std::stop_token& abandoned) {
  std::vector<Pipeline> pipelines(kernels.size());
  std::vector<size_t> missing;
  for (size_t i = 0; i < kernels.size(); ++i) {
    pipelines[i] = Find(kernels[i]);
    if (pipelines[i] == nullptr) missing.push_back(i);
  }
  std::vector<absl::Status> statuses(missing.size());
  OnAllCores(missing.size(), [&](size_t i) {
    statuses[i] = CheckAbandoned(abandoned);
    if (!statuses[i].ok()) return false;
    absl::StatusOr<Pipeline> pipeline = Get(kernels[missing[i]]);
    statuses[i] = pipeline.status();
    if (!pipeline.ok()) return false;
    pipelines[missing[i]] = *std::move(pipeline);
    return true;
  });
  for (absl::Status& status : statuses) RETURN_IF_ERROR(std::move(status));
  return pipelines;
}

PipelineCache::Pipeline PipelineCache::Find(const KernelPermutation& kernel) {
  const absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(kernel);
  if (found == entries_.end()) return nullptr;
  const Creation& creation = *found->second.creation;
  if (!creation.done.HasBeenNotified() || !creation.result.ok()) return nullptr;
  found->second.last_use = ++clock_;
  return *creation.result;
}

size_t PipelineCache::size() const {
  absl::MutexLock lock(&mutex_);
  return entries_.size();
}

// Pipelines that only the cache references cannot gain references while its mutex is held.
// Destroying a pipeline may wait for the device in some drivers, so that happens after unlocking.
void PipelineCache::Trim(size_t most) {
  std::vector<std::shared_ptr<Creation>> released;
  absl::MutexLock lock(&mutex_);
  if (entries_.size() <= most) return;
  std::vector<decltype(entries_)::iterator> unheld;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const std::shared_ptr<Creation>& creation = entry->second.creation;
    if (creation.use_count() == 1 && creation->result->use_count() == 1) unheld.push_back(entry);
  }
  std::sort(unheld.begin(), unheld.end(),
            [](const auto& a, const auto& b) { return a->second.last_use < b->second.last_use; });
  for (const auto& entry : unheld) {
    if (entries_.size() <= most) break;
    released.push_back(std::move(entry->second.creation));
    entries_.erase(entry);
  }
}

absl::StatusOr<PipelineCache::Pipeline> PipelineCache::Create(const KernelPermutation& kernel) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const std::string> bytecode, shaders_.Get(kernel));
  D3D12_COMPUTE_PIPELINE_STATE_DESC desc = {};
  desc.pRootSignature = root_signature_.Get();
  desc.CS = {bytecode->data(), bytecode->size()};
  ComPtr<ID3D12PipelineState> pipeline;
  RETURN_IF_ERROR(health_->Check(
      device_->CreateComputePipelineState(&desc, __uuidof(ID3D12PipelineState),
                                          reinterpret_cast<void**>(pipeline.GetAddressOf())),
      absl::StrCat("CreateComputePipelineState(", kernel.shader, ", ", kernel.entry, ")")));
  counters_.pipelines_created.fetch_add(1, std::memory_order_relaxed);
  return Pipeline(pipeline.Detach(), [](ID3D12PipelineState* live) { live->Release(); });
}

}  // namespace opmill
