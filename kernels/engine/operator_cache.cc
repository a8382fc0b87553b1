#include "kernels/engine/operator_cache.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/sha256.h"
#include "kernels/base/steady_time.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {
namespace {

// Programs that are known by their address before those that are gone are forgotten.
constexpr size_t kMostKnown = 1024;

// The set of axes that attribute `i` holds; null for other attributes.
const std::vector<uint32_t>* AxesIn(const OperatorDesc& desc, size_t i) {
  if (desc.schema->attributes[i].kind != AttributeKind::kAxes) return nullptr;
  return &std::get<std::vector<uint32_t>>(desc.attributes[i]);
}

bool HasCanonicalStrides(const TensorDesc& tensor) {
  return tensor.strides.empty() || !IsPacked(tensor);
}

// Normalizes what can be written in several ways: packed strides, and the order of axes.
bool IsCanonical(const OperatorDesc& desc) {
  for (const TensorDesc& input : desc.inputs) {
    if (!HasCanonicalStrides(input)) return false;
  }
  for (const std::optional<TensorDesc>& output : desc.outputs) {
    if (output.has_value() && !HasCanonicalStrides(*output)) return false;
  }
  for (size_t i = 0; i < desc.attributes.size(); ++i) {
    const std::vector<uint32_t>* const axes = AxesIn(desc, i);
    if (axes != nullptr && !std::is_sorted(axes->begin(), axes->end())) return false;
  }
  return true;
}

OperatorDesc Canonical(OperatorDesc desc) {
  for (TensorDesc& input : desc.inputs) {
    if (IsPacked(input)) input.strides.clear();
  }
  for (std::optional<TensorDesc>& output : desc.outputs) {
    if (output.has_value() && IsPacked(*output)) output->strides.clear();
  }
  for (size_t i = 0; i < desc.attributes.size(); ++i) {
    if (AxesIn(desc, i) == nullptr) continue;
    auto& axes = std::get<std::vector<uint32_t>>(desc.attributes[i]);
    std::sort(axes.begin(), axes.end());
  }
  return desc;
}

bool IsCanonical(const Program& program) {
  return std::all_of(program.values.begin(), program.values.end(),
                     [](const ProgramValue& v) { return HasCanonicalStrides(v.tensor); }) &&
         std::all_of(program.nodes.begin(), program.nodes.end(),
                     [](const ProgramNode& node) { return IsCanonical(node.desc); });
}

Program Canonical(Program program) {
  for (ProgramValue& value : program.values) {
    if (IsPacked(value.tensor)) value.tensor.strides.clear();
  }
  for (ProgramNode& node : program.nodes) node.desc = Canonical(std::move(node.desc));
  return program;
}

}  // namespace

std::string OperatorKey(const OperatorDesc& validated) {
  // ToString contains every field, in a unique form.
  return Sha256Hex(ToString(Canonical(validated)));
}

std::unique_ptr<OperatorCache> OperatorCache::Create(Device& device, OperatorCacheOptions options) {
  return std::unique_ptr<OperatorCache>(new OperatorCache(device, options));
}

absl::StatusOr<CachedOperator> OperatorCache::Get(const Program& validated, absl::Time deadline,
                                                  std::shared_ptr<const CompiledProgram> compiled) {
  const absl::Time start = SteadyNow();
  const Key key(std::make_shared<const Program>(Canonical(validated)));
  std::shared_ptr<Compilation> compilation;
  bool is_mine = false;
  bool was_cached = false;
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = entries_[key];
    is_mine = entry.compilation == nullptr;
    if (is_mine) entry.compilation = std::make_shared<Compilation>(*key.program);
    was_cached = entry.compiled;
    entry.last_use = ++clock_;
    compilation = entry.compilation;
    if (is_mine) {
      ++statistics_.misses;
    } else if (was_cached) {
      ++statistics_.hits;
    } else {
      ++statistics_.waits;
    }
  }
  if (is_mine) {
    if (compiled == nullptr) {
      compilation->result = device_.Compile(*key.program);
    } else {
      compilation->result = std::move(compiled);
    }
    Settle(key, compilation);
  } else if (!AwaitDone(*compilation, deadline)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "The deadline passed after ", absl::FormatDuration(SteadyNow() - start),
        " of waiting for another caller to compile ", Excerpt(*compilation->text, 1000), "."));
  }
  RETURN_IF_ERROR(compilation->result.status());
  return CachedOperator{*compilation->result, was_cached, SteadyNow() - start, key.program,
                        compilation->text};
}

std::optional<CachedOperator> OperatorCache::Find(const std::shared_ptr<const Program>& validated) {
  {
    const absl::MutexLock lock(&mutex_);
    if (auto found = FindKnown(validated)) return found;
  }
  const Key key(IsCanonical(*validated) ? validated
                                        : std::make_shared<const Program>(Canonical(*validated)));
  const absl::MutexLock lock(&mutex_);
  std::optional<CachedOperator> found = FindEntry(key);
  if (found.has_value() && key.op == nullptr) {
    if (known_.size() > kMostKnown) {
      absl::erase_if(known_, [](const auto& each) {
        return each.second.program.expired() || each.second.normalized.expired();
      });
    }
    known_[validated.get()] = {validated, found->program, key.hash};
  }
  return found;
}

std::optional<CachedOperator> OperatorCache::FindKnown(
    const std::shared_ptr<const Program>& program) {
  const auto known = known_.find(program.get());
  if (known == known_.end() || known->second.program.lock() != program) return std::nullopt;
  std::shared_ptr<const Program> normalized = known->second.normalized.lock();
  if (normalized == nullptr) return std::nullopt;
  return FindEntry(Key(std::move(normalized), known->second.hash));
}

std::optional<CachedOperator> OperatorCache::FindNormalized(const OperatorDesc& validated) {
  if (!IsCanonical(validated)) return std::nullopt;
  const absl::MutexLock lock(&mutex_);
  return FindEntry(validated);
}

template <typename KeyOrOperator>
std::optional<CachedOperator> OperatorCache::FindEntry(const KeyOrOperator& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end() || !found->second.compiled) return std::nullopt;
  found->second.last_use = ++clock_;
  ++statistics_.hits;
  const Compilation& compilation = *found->second.compilation;
  return CachedOperator{*compilation.result, true, absl::ZeroDuration(), found->first.program,
                        compilation.text};
}

void OperatorCache::Invalidate() {
  absl::MutexLock lock(&mutex_);
  entries_.clear();
  kernel_uses_.clear();
  statistics_.entries = 0;
  statistics_.bytes = 0;
  statistics_.kernels = 0;
}

void OperatorCache::Evict(size_t operators) {
  absl::MutexLock lock(&mutex_);
  for (; operators > 0 && statistics_.entries > 0; --operators) EvictOldest();
}

OperatorCacheStatistics OperatorCache::statistics() const {
  absl::MutexLock lock(&mutex_);
  return statistics_;
}

bool OperatorCache::AwaitDone(const Compilation& compilation, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  return settled_.Await(
      &mutex_, [&] { return compilation.done; }, deadline);
}

// Keeps a successful compilation and wakes the waiting callers in one step, so that a later call
// finds the operator, or finds that its failure has been removed.
void OperatorCache::Settle(const Key& key, const std::shared_ptr<Compilation>& compilation) {
  absl::MutexLock lock(&mutex_);
  compilation->done = true;
  settled_.SignalAll();
  if (!compilation->result.ok()) ++statistics_.failures;
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.compilation != compilation) return;  // Invalidate
  if (!compilation->result.ok()) {
    entries_.erase(found);
    return;
  }
  const ProgramCost& cost = (*compilation->result)->cost();
  const uint64_t bytes = cost.kept_bytes;
  if (options_.capacity == 0 || bytes > options_.max_bytes ||
      cost.kernels.size() > options_.max_kernels) {
    entries_.erase(found);
    return;
  }
  HoldKernels(cost);
  while (statistics_.entries == options_.capacity ||
         statistics_.bytes > options_.max_bytes - bytes ||
         statistics_.kernels > options_.max_kernels) {
    EvictOldest();
  }
  found->second.compiled = true;
  found->second.bytes = bytes;
  ++statistics_.entries;
  statistics_.bytes += bytes;
}

// O(n) scan; eviction happens next to a compilation of milliseconds. In return, a hit only updates
// a number.
void OperatorCache::EvictOldest() {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!entry->second.compiled) continue;
    if (oldest == entries_.end() || entry->second.last_use < oldest->second.last_use) {
      oldest = entry;
    }
  }
  statistics_.bytes -= oldest->second.bytes;
  DropKernels((*oldest->second.compilation->result)->cost());
  entries_.erase(oldest);
  --statistics_.entries;
  ++statistics_.evictions;
}

void OperatorCache::HoldKernels(const ProgramCost& cost) {
  for (const uint64_t kernel : cost.kernels) ++kernel_uses_[kernel];
  statistics_.kernels = kernel_uses_.size();
}

void OperatorCache::DropKernels(const ProgramCost& cost) {
  for (const uint64_t kernel : cost.kernels) {
    const auto uses = kernel_uses_.find(kernel);
    if (--uses->second == 0) kernel_uses_.erase(uses);
  }
  statistics_.kernels = kernel_uses_.size();
}

}  // namespace opmill
