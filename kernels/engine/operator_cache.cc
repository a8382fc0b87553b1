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
                                                  CacheRequest request) {
  struct Answer {
    absl::Mutex mutex;
    SteadyCondVar has_come;
    std::optional<absl::StatusOr<CachedOperator>> got;
  };
  const auto answer = std::make_shared<Answer>();
  const std::shared_ptr<Wait> wait = Join(validated, std::move(request), [answer](const auto& got) {
    const absl::MutexLock lock(&answer->mutex);
    answer->got = got;
    answer->has_come.SignalAll();
  });
  {
    const absl::MutexLock lock(&answer->mutex);
    if (answer->has_come.Await(
            &answer->mutex, [&] { return answer->got.has_value(); }, deadline)) {
      return *std::move(answer->got);
    }
  }
  Leave(*wait);
  return absl::DeadlineExceededError(absl::StrCat(
      "The deadline passed after ", absl::FormatDuration(SteadyNow() - wait->start),
      " of waiting for another caller to compile ", Excerpt(*wait->compilation->text, 1000), "."));
}

std::shared_ptr<OperatorCache::Wait> OperatorCache::Join(const Program& validated,
                                                         CacheRequest request, Done done) {
  const auto wait = std::make_shared<Wait>(std::move(done));
  const Key key(std::make_shared<const Program>(Canonical(validated)));
  bool is_mine = false;
  Done is_cached;
  {
    const absl::MutexLock lock(&mutex_);
    Entry& entry = entries_[key];
    is_mine = entry.compilation == nullptr;
    if (is_mine) entry.compilation = std::make_shared<Compilation>(key, generation_);
    entry.last_use = ++clock_;
    wait->compilation = entry.compilation;
    if (entry.compiled) {
      is_cached = std::exchange(wait->done, nullptr);
    } else {
      wait->compilation->waits.push_back(wait);
    }
    ++(is_mine ? statistics_.misses : entry.compiled ? statistics_.hits : statistics_.waits);
  }
  Compilation& compilation = *wait->compilation;
  if (is_cached != nullptr) {
    is_cached(compilation.AnswerOf(/*was_cached=*/true, SteadyNow() - wait->start));
    return wait;
  }
  // Called back at once if the stop has come already.
  wait->cancels.emplace(request.cancelled, [this, weak = std::weak_ptr(wait)] {
    if (const std::shared_ptr<Wait> gone = weak.lock()) Leave(*gone);
  });
  if (!is_mine) return wait;
  if (compilation.abandoned.stop_requested()) {
    compilation.result = absl::CancelledError("No caller waits for the compilation.");
  } else if (request.compiled != nullptr) {
    compilation.result = std::move(request.compiled);
  } else if (request.compile != nullptr) {
    compilation.result = request.compile(*key.program, compilation.abandoned);
  } else {
    compilation.result = device_.Compile(*key.program, compilation.abandoned.get_token());
  }
  Settle(wait->compilation);
  return wait;
}

void OperatorCache::Leave(Wait& wait) {
  Done done;
  std::shared_ptr<Wait> left;  // destroyed without the lock
  bool is_abandoned = false;
  Compilation& compilation = *wait.compilation;
  {
    const absl::MutexLock lock(&mutex_);
    if (wait.done == nullptr) return;
    done = std::exchange(wait.done, nullptr);
    const auto at =
        std::find_if(compilation.waits.begin(), compilation.waits.end(),
                     [&](const std::shared_ptr<Wait>& each) { return each.get() == &wait; });
    left = std::move(*at);
    compilation.waits.erase(at);
    is_abandoned = compilation.waits.empty();
    // Those that come later do not join it.
    const auto found = is_abandoned ? entries_.find(compilation.key) : entries_.end();
    if (found != entries_.end() && found->second.compilation.get() == &compilation) {
      entries_.erase(found);
    }
  }
  if (is_abandoned) std::stop_source(compilation.abandoned).request_stop();
  done(absl::CancelledError("The caller does not wait for the compilation any more."));
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
  ++generation_;
  entries_.clear();
  kernel_uses_.clear();
  memory_uses_.clear();
  statistics_.entries = 0;
  statistics_.bytes = 0;
  statistics_.kernels = 0;
}

void OperatorCache::Evict(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  const OperatorCacheStatistics before = statistics_;
  const bool has_enough = before.bytes >= bytes;
  const uint64_t most_bytes = has_enough ? before.bytes - bytes : before.bytes / 2;
  const uint64_t most_entries = has_enough ? before.entries : before.entries / 2;
  while (statistics_.bytes > most_bytes || statistics_.entries > most_entries) EvictOldest();
}

OperatorCacheStatistics OperatorCache::statistics() const {
  absl::MutexLock lock(&mutex_);
  return statistics_;
}

// Keeps a successful compilation before the waiting callers continue, so that a later call finds
// the operator, or finds that its failure has been removed.
void OperatorCache::Settle(const std::shared_ptr<Compilation>& compilation) {
  std::vector<std::shared_ptr<Wait>> waits;
  std::vector<Done> done;
  {
    const absl::MutexLock lock(&mutex_);
    Keep(compilation);
    waits.swap(compilation->waits);
    for (const std::shared_ptr<Wait>& wait : waits) {
      done.push_back(std::exchange(wait->done, nullptr));
    }
  }
  for (size_t i = 0; i < waits.size(); ++i) {
    if (compilation->result.ok()) {
      done[i](compilation->AnswerOf(/*was_cached=*/false, SteadyNow() - waits[i]->start));
    } else {
      done[i](compilation->result.status());
    }
  }
}

void OperatorCache::Keep(const std::shared_ptr<Compilation>& compilation) {
  const absl::Status& status = compilation->result.status();
  if (!status.ok() && !absl::IsCancelled(status)) ++statistics_.failures;
  auto found = entries_.find(compilation->key);
  if (found == entries_.end() && compilation->result.ok() &&
      compilation->generation == generation_) {
    // Its last caller left when it was about to end.
    found = entries_.emplace(compilation->key, Entry{compilation, ++clock_}).first;
  }
  // Invalidate, or Leave.
  if (found == entries_.end() || found->second.compilation != compilation) return;
  if (!compilation->result.ok()) {
    entries_.erase(found);
    return;
  }
  const ProgramCost& cost = (*compilation->result)->cost();
  if (options_.capacity == 0 || cost.kept_bytes > options_.max_bytes ||
      cost.kernels.size() > options_.max_kernels) {
    entries_.erase(found);
    return;
  }
  Hold(cost);
  while (statistics_.entries == options_.capacity || statistics_.bytes > options_.max_bytes ||
         statistics_.kernels > options_.max_kernels) {
    EvictOldest();
  }
  found->second.compiled = true;
  ++statistics_.entries;
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
  Drop((*oldest->second.compilation->result)->cost());
  entries_.erase(oldest);
  --statistics_.entries;
  ++statistics_.evictions;
}

void OperatorCache::Hold(const ProgramCost& cost) {
  for (const uint64_t kernel : cost.kernels) ++kernel_uses_[kernel];
  statistics_.kernels = kernel_uses_.size();
  statistics_.bytes += cost.kept_bytes;
  for (const SharedBytes& shared : cost.shared) {
    if (++memory_uses_[shared.memory] > 1) statistics_.bytes -= shared.bytes;
  }
}

void OperatorCache::Drop(const ProgramCost& cost) {
  for (const uint64_t kernel : cost.kernels) {
    const auto uses = kernel_uses_.find(kernel);
    if (--uses->second == 0) kernel_uses_.erase(uses);
  }
  statistics_.kernels = kernel_uses_.size();
  statistics_.bytes -= cost.kept_bytes;
  for (const SharedBytes& shared : cost.shared) {
    const auto uses = memory_uses_.find(shared.memory);
    if (--uses->second == 0) {
      memory_uses_.erase(uses);
    } else {
      statistics_.bytes += shared.bytes;
    }
  }
}

}  // namespace opmill
