#include "server/tensors/tensor_store.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/steady_time.h"
#include "server/status/error_reason.h"
#include "server/status/retry_delay.h"

namespace opmill {
namespace {

constexpr size_t kMostNameBytes = 128;
// Rows up to this size are replaced in place while no run reads the tensor; callers that look for
// it wait for a fraction of a millisecond.
constexpr size_t kShortCopyBytes = size_t{1} << 20;

absl::Status CheckName(absl::string_view name) {
  const auto is_allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ||
           c == '/' || c == ':';
  };
  if (!name.empty() && name.size() <= kMostNameBytes &&
      std::all_of(name.begin(), name.end(), is_allowed)) {
    return absl::OkStatus();
  }
  return InvalidField("name",
                      absl::StrCat("name (\"", Excerpt(name), "\") has to be 1 to ", kMostNameBytes,
                                   " letters, digits, or characters of \"_-./:\"."));
}

// A tensor without dimensions is one row.
uint64_t RowsOf(const TensorDesc& tensor) { return tensor.sizes.empty() ? 1 : tensor.sizes[0]; }

TensorDesc WithRows(TensorDesc tensor, uint64_t rows) {
  if (!tensor.sizes.empty()) tensor.sizes[0] = static_cast<uint32_t>(rows);
  return tensor;
}

bool HaveEqualRows(const TensorDesc& a, const TensorDesc& b) {
  return a.data_type == b.data_type && a.sizes.size() == b.sizes.size() && !a.sizes.empty() &&
         std::equal(a.sizes.begin() + 1, a.sizes.end(), b.sizes.begin() + 1);
}

absl::Status NoSuchTensor(absl::string_view name) {
  const std::string sentence = absl::StrCat("There is no tensor \"", Excerpt(name), "\" here.");
  return WithReason(WithField(absl::NotFoundError(sentence), "name"), "UNKNOWN_TENSOR");
}

absl::Status IsLost(absl::string_view name) {
  return WithReason(absl::UnavailableError(absl::StrCat(
                        "The tensor \"", name, "\" was lost with the device; put it again.")),
                    "TENSOR_LOST");
}

absl::Status IsLostFile(absl::string_view name) {
  return WithReason(absl::UnavailableError(absl::StrCat(
                        "The tensor \"", name,
                        "\" was lost with the device, and could not be put back from its file.")),
                    "TENSOR_LOST");
}

absl::Status IsBeingPutBack(absl::string_view name) {
  return WithRetryDelay(
      absl::UnavailableError(absl::StrCat("The tensor \"", name,
                                          "\" was lost with the device, and is being put back.")),
      kUsualRetryDelay);
}

// Of a copy that outlives what this returns.
TensorContents ContentsOf(const HostCopy& copy) {
  return [&copy](uint64_t offset, absl::Span<std::byte> to) {
    const absl::Span<const std::byte> from = copy.bytes();
    std::copy_n(from.begin() + static_cast<size_t>(offset), to.size(), to.begin());
    return absl::OkStatus();
  };
}

std::string Subject(absl::string_view name) { return absl::StrCat("the tensor \"", name, "\""); }

absl::Status OtherGeneration(const std::string& name, uint64_t generation, uint64_t wanted) {
  const std::string is =
      generation == 0 ? "does not exist" : absl::StrCat("has the generation ", generation);
  const std::string sentence = absl::StrCat("The tensor \"", Excerpt(name), "\" ", is, ", not ",
                                            wanted, " (if_generation).");
  return WithReason(WithField(absl::FailedPreconditionError(sentence), "if_generation"),
                    "OTHER_GENERATION");
}

}  // namespace

std::shared_ptr<Buffer> ResidentTensor::buffer() const {
  return std::shared_ptr<Buffer>(memory, memory->buffer.get());
}

std::shared_ptr<Buffer> TensorStore::Writing::buffer() const {
  return memory_ == nullptr ? nullptr : std::shared_ptr<Buffer>(memory_, memory_->buffer.get());
}

TensorStore::TensorStore(Device& device, ResidentTensorLimits limits, bool keeps_copies)
    : device_(device),
      keeps_copies_(keeps_copies),
      bytes_(std::make_shared<ResidentBytes>(limits)) {}

TensorStore::~TensorStore() = default;

TensorStore::Entries::iterator TensorStore::Locate(const std::string& owner,
                                                   const std::string& name) {
  const auto of_server = entries_.find({.is_of_server = true, .name = name});
  return of_server != entries_.end() ? of_server : entries_.find({.owner = owner, .name = name});
}

absl::StatusOr<std::shared_ptr<ResidentMemory>> TensorStore::Allocate(const Key& key,
                                                                      uint64_t bytes) {
  auto memory = std::make_shared<ResidentMemory>();
  ASSIGN_OR_RETURN(memory->share, bytes_->Take(key.owner_or_null(), Subject(key.name), bytes));
  ASSIGN_OR_RETURN(memory->buffer, device_.Allocate(bytes, Residency::kDevice));
  if (keeps_copies_ && !key.is_of_server) {
    ASSIGN_OR_RETURN(
        ResidentBytes::Share share,
        bytes_->Take(&key.owner, absl::StrCat("the copy of ", Subject(key.name)), bytes));
    ASSIGN_OR_RETURN(memory->copy, HostCopy::Create(bytes, std::move(share)));
  }
  return memory;
}

absl::Status TensorStore::Serve(const std::string& name, const TensorDesc& tensor,
                                TensorContents contents) {
  RETURN_IF_ERROR(CheckName(name));
  const Key key = {.is_of_server = true, .name = name};
  ASSIGN_OR_RETURN(auto memory, Allocate(key, RequiredBytes(tensor)));
  RETURN_IF_ERROR(WriteBuffer(device_, memory->buffer, SpannedBytes(tensor), contents));
  const absl::MutexLock lock(&mutex_);
  entries_[key] = {.state = std::make_shared<const ResidentTensor>(
                       ResidentTensor{.name = name,
                                      .tensor = tensor,
                                      .generation = next_generation_++,
                                      .capacity_rows = RowsOf(tensor),
                                      .memory = std::move(memory)}),
                   .lease = absl::InfiniteDuration(),
                   .used = SteadyNow(),
                   .contents = std::move(contents)};
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const ResidentTensor>> TensorStore::Find(absl::string_view owner,
                                                                        absl::string_view name) {
  const absl::MutexLock lock(&mutex_);
  const auto found = Locate(std::string(owner), std::string(name));
  if (found == entries_.end()) return NoSuchTensor(name);
  auto& [key, entry] = *found;
  if (entry.is_lost) return LossOf(key, entry);
  entry.used = SteadyNow();
  return entry.state;
}

bool TensorStore::Entry::can_be_put_back() const {
  return contents != nullptr || (state->memory != nullptr && state->memory->copy != nullptr);
}

absl::Status TensorStore::LossOf(const Key& key, const Entry& entry) {
  if (entry.can_be_put_back()) return IsBeingPutBack(key.name);
  return key.is_of_server ? IsLostFile(key.name) : IsLost(key.name);
}

absl::Status TensorStore::CheckWritable(const std::string& name) const {
  if (entries_.count({.is_of_server = true, .name = name}) == 0) return absl::OkStatus();
  const std::string sentence = absl::StrCat(
      "The tensor \"", name, "\" is a file of the server (--tensors), and can only be read.");
  return WithReason(WithField(absl::FailedPreconditionError(sentence), "name"), "READ_ONLY_TENSOR");
}

// `entry` is null if there is no such tensor.
absl::Status TensorStore::Check(const ResidentWrite& write, const TensorDesc& output,
                                const Entry* entry) const {
  const uint64_t generation = entry == nullptr ? 0 : entry->state->generation;
  if (write.if_generation.has_value() && *write.if_generation != generation) {
    return OtherGeneration(write.name, generation, *write.if_generation);
  }
  if (write.kind == ResidentWrite::Kind::kPut) return absl::OkStatus();
  if (entry == nullptr) return NoSuchTensor(write.name);
  if (entry->is_lost) return LossOf({.name = write.name}, *entry);
  const ResidentTensor& state = *entry->state;
  if (!HaveEqualRows(state.tensor, output)) {
    return InvalidField("name", absl::StrCat("The output is ", ToString(output), "; the tensor \"",
                                             write.name, "\" is ", ToString(state.tensor),
                                             ", and takes rows of its own type and sizes."));
  }
  const uint64_t rows = RowsOf(state.tensor);
  const uint64_t added = RowsOf(output);
  if (write.kind == ResidentWrite::Kind::kAppend && added > state.capacity_rows - rows) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The tensor \"", write.name, "\" has ", rows, " of ", state.capacity_rows,
                     " rows (capacity_rows); ", added, " more do not fit."));
  }
  if (write.kind == ResidentWrite::Kind::kWrite &&
      (write.first_row > rows || added > rows - write.first_row)) {
    return InvalidField("first_row", absl::StrCat("first_row (", write.first_row, ") and ", added,
                                                  " rows end past the ", rows,
                                                  " rows of the tensor \"", write.name, "\"."));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<TensorStore::Writing>> TensorStore::Begin(ResidentWrite write,
                                                                         const TensorDesc& output) {
  RETURN_IF_ERROR(CheckName(write.name));
  uint64_t losses = 0;
  {
    const absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckWritable(write.name));
    const auto found = entries_.find({.owner = write.owner, .name = write.name});
    RETURN_IF_ERROR(Check(write, output, found == entries_.end() ? nullptr : &found->second));
    losses = losses_;
  }
  std::shared_ptr<ResidentMemory> memory;
  if (write.kind == ResidentWrite::Kind::kPut) {
    const uint64_t rows = RowsOf(output);
    if (write.capacity_rows == 0) write.capacity_rows = rows;
    if (write.capacity_rows < rows) {
      return InvalidField("capacity_rows",
                          absl::StrCat("capacity_rows (", write.capacity_rows,
                                       ") is below the number of rows (", rows, ")."));
    }
    const uint64_t most = std::numeric_limits<uint32_t>::max() / (ElementCount(output) / rows);
    if (write.capacity_rows > most) {
      return InvalidField("capacity_rows",
                          absl::StrCat("capacity_rows (", write.capacity_rows, ") is above ", most,
                                       ", with which the tensor has 2^32 - 1 elements."));
    }
    ASSIGN_OR_RETURN(memory, Allocate({.owner = write.owner, .name = write.name},
                                      RequiredBytes(WithRows(output, write.capacity_rows))));
  }
  return std::make_shared<Writing>(*this, std::move(write), output, std::move(memory), losses);
}

absl::Status TensorStore::Writing::Finish(absl::Span<const std::byte> rows) {
  ASSIGN_OR_RETURN(written_, memory_ != nullptr ? store_.Put(*this) : store_.Change(*this, rows));
  return absl::OkStatus();
}

TensorStore::Written TensorStore::WrittenOf(const ResidentTensor& state) {
  return {state.generation, RowsOf(state.tensor), state.capacity_rows};
}

absl::StatusOr<TensorStore::Written> TensorStore::Put(Writing& writing) {
  const ResidentWrite& write = writing.write_;
  if (const auto& copy = writing.memory_->copy; copy != nullptr) {
    RETURN_IF_ERROR(
        ReadBuffer(device_, writing.memory_->buffer, 0,
                   copy->bytes().first(static_cast<size_t>(SpannedBytes(writing.output_)))));
  }
  Entry old;  // released without the lock
  const absl::MutexLock lock(&mutex_);
  if (writing.losses_ != losses_) return IsLost(write.name);
  const Key key = {.owner = write.owner, .name = write.name};
  Entry& entry = entries_[key];
  if (absl::Status fits = Check(write, writing.output_, entry.state == nullptr ? nullptr : &entry);
      !fits.ok()) {
    if (entry.state == nullptr) entries_.erase(key);
    return fits;
  }
  old = std::exchange(entry, {.lease = write.lease, .used = SteadyNow()});
  entry.state =
      std::make_shared<const ResidentTensor>(ResidentTensor{.name = write.name,
                                                            .tensor = writing.output_,
                                                            .generation = next_generation_++,
                                                            .capacity_rows = write.capacity_rows,
                                                            .memory = writing.memory_});
  return WrittenOf(*entry.state);
}

std::shared_ptr<absl::Mutex> TensorStore::WritersOf(const Key& key) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second.writers;
}

absl::StatusOr<TensorStore::Written> TensorStore::Change(Writing& writing,
                                                         absl::Span<const std::byte> rows) {
  const ResidentWrite& write = writing.write_;
  const Key key = {.owner = write.owner, .name = write.name};
  const std::shared_ptr<absl::Mutex> writers = WritersOf(key);
  if (writers == nullptr) return NoSuchTensor(write.name);
  const absl::MutexLock one_writer(writers.get());
  std::shared_ptr<const ResidentTensor> old;
  ResidentTensor state;
  size_t place = 0;
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = entries_.find(key);
    RETURN_IF_ERROR(
        Check(write, writing.output_, found == entries_.end() ? nullptr : &found->second));
    state = *found->second.state;
    const uint64_t row =
        write.kind == ResidentWrite::Kind::kAppend ? RowsOf(state.tensor) : write.first_row;
    place = static_cast<size_t>(row * (rows.size() / RowsOf(writing.output_)));
    const bool is_unread = found->second.state.use_count() == 1 && state.memory.use_count() == 2;
    const bool is_short = rows.size() <= kShortCopyBytes && !state.memory->buffer->bytes().empty();
    if (write.kind == ResidentWrite::Kind::kWrite && is_unread && is_short) {
      RETURN_IF_ERROR(state.memory->Write(device_, place, rows));
      state.generation = next_generation_++;
      found->second.used = SteadyNow();
      found->second.state = std::make_shared<const ResidentTensor>(state);
      return WrittenOf(state);
    }
    old = found->second.state;
  }
  if (write.kind == ResidentWrite::Kind::kAppend) {
    state.tensor = WithRows(state.tensor, RowsOf(state.tensor) + RowsOf(writing.output_));
  } else {
    ASSIGN_OR_RETURN(state.memory, Allocate(key, old->memory->buffer->size_bytes()));
    RETURN_IF_ERROR(state.memory->CopyFrom(device_, *old->memory, SpannedBytes(old->tensor)));
  }
  RETURN_IF_ERROR(state.memory->Write(device_, place, rows));
  const absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.state != old || found->second.is_lost) {
    return absl::AbortedError(absl::StrCat("The tensor \"", write.name,
                                           "\" was put, deleted or lost while it was written."));
  }
  state.generation = next_generation_++;
  found->second.used = SteadyNow();
  found->second.state = std::make_shared<const ResidentTensor>(std::move(state));
  return WrittenOf(*found->second.state);
}

absl::Status TensorStore::Delete(absl::string_view owner, absl::string_view name,
                                 std::optional<uint64_t> if_generation) {
  Entry old;  // released without the lock
  const absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckWritable(std::string(name)));
  const auto found = entries_.find({.owner = std::string(owner), .name = std::string(name)});
  if (found == entries_.end()) return NoSuchTensor(name);
  const uint64_t generation = found->second.state->generation;
  if (if_generation.has_value() && *if_generation != generation) {
    return OtherGeneration(std::string(name), generation, *if_generation);
  }
  old = std::move(found->second);
  entries_.erase(found);
  return absl::OkStatus();
}

std::vector<TensorStore::Listed> TensorStore::List(absl::string_view owner) const {
  const absl::Time now = SteadyNow();
  std::vector<Listed> listed;
  const auto add = [&](const Key& first) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    for (auto found = entries_.lower_bound(first);
         found != entries_.end() && found->first.is_of_server == first.is_of_server &&
         found->first.owner == first.owner;
         ++found) {
      const Entry& entry = found->second;
      listed.push_back({.state = entry.state,
                        .bytes = entry.is_lost ? 0 : entry.state->memory->buffer->size_bytes(),
                        .lease = entry.lease,
                        .left = entry.lease - (now - entry.used),
                        .is_lost = entry.is_lost,
                        .is_read_only = first.is_of_server});
    }
  };
  {
    const absl::MutexLock lock(&mutex_);
    add({.owner = std::string(owner)});
    add({.is_of_server = true});
  }
  std::sort(listed.begin(), listed.end(),
            [](const Listed& a, const Listed& b) { return a.state->name < b.state->name; });
  return listed;
}

TensorStore::Totals TensorStore::totals() const {
  Totals totals;
  {
    const absl::MutexLock lock(&mutex_);
    totals = {.tensors = entries_.size(), .bytes = 0, .expired = expired_, .lost = lost_};
  }
  totals.bytes = bytes_->all();
  return totals;
}

void TensorStore::DropExpired(absl::Time now) {
  std::vector<Entry> expired;  // released without the lock
  const absl::MutexLock lock(&mutex_);
  for (auto at = entries_.begin(); at != entries_.end();) {
    if (now - at->second.used < at->second.lease) {
      ++at;
      continue;
    }
    ++expired_;
    expired.push_back(std::move(at->second));
    at = entries_.erase(at);
  }
}

void TensorStore::DeviceLost() {
  std::vector<std::shared_ptr<const ResidentTensor>> lost;  // released without the lock
  const absl::MutexLock lock(&mutex_);
  ++losses_;
  for (auto& [key, entry] : entries_) {
    if (entry.is_lost) continue;
    entry.is_lost = true;
    if (!entry.can_be_put_back()) ++lost_;
    lost.push_back(entry.state);
    ResidentTensor state = *entry.state;
    state.memory = std::make_shared<ResidentMemory>();
    state.memory->copy = entry.state->memory->copy;
    entry.state = std::make_shared<const ResidentTensor>(std::move(state));
  }
}

TensorStore::PutBackReport TensorStore::PutBack() {
  std::vector<Key> keys;
  {
    const absl::MutexLock lock(&mutex_);
    for (const auto& [key, entry] : entries_) {
      if (entry.can_be_put_back()) keys.push_back(key);
    }
  }
  PutBackReport report;
  for (const Key& key : keys) {
    const absl::StatusOr<uint64_t> bytes = PutBackOne(key);
    if (!bytes.ok()) {
      report.failures.push_back(bytes.status());
    } else if (*bytes > 0) {
      ++report.tensors;
      report.bytes += *bytes;
    }
  }
  return report;
}

absl::StatusOr<uint64_t> TensorStore::PutBackOne(const Key& key) {
  const std::shared_ptr<absl::Mutex> writers = WritersOf(key);
  if (writers == nullptr) return 0;
  const absl::MutexLock one_writer(writers.get());
  std::shared_ptr<const ResidentTensor> old;
  TensorContents contents;
  uint64_t losses = 0;
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end() || !found->second.can_be_put_back()) return 0;
    old = found->second.state;
    contents = found->second.contents;
    losses = losses_;
  }
  // The memory that it replaces counts until then.
  auto memory = std::make_shared<ResidentMemory>();
  memory->copy = old->memory->copy;
  if (contents == nullptr) contents = ContentsOf(*memory->copy);
  const uint64_t bytes = RequiredBytes(WithRows(old->tensor, old->capacity_rows));
  memory->share = bytes_->TakeAnyway(key.owner_or_null(), bytes);
  const auto write = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(memory->buffer, device_.Allocate(bytes, Residency::kDevice));
    return WriteBuffer(device_, memory->buffer, SpannedBytes(old->tensor), contents);
  };
  const absl::Status written = write();
  ResidentTensor state = *old;
  state.memory = std::move(memory);
  const absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(key);
  // After a further loss it is put back again.
  if (found == entries_.end() || found->second.state != old || losses_ != losses ||
      absl::IsUnavailable(written)) {
    return 0;
  }
  Entry& entry = found->second;
  if (written.ok()) {
    entry.is_lost = false;
    entry.state = std::make_shared<const ResidentTensor>(std::move(state));
    return bytes;
  }
  if (entry.is_lost) {
    ++lost_;
    entry.contents = nullptr;
    state.memory = std::make_shared<ResidentMemory>();
    entry.state = std::make_shared<const ResidentTensor>(std::move(state));
  }
  return absl::Status(written.code(), absl::StrCat("The tensor \"", key.name,
                                                   "\" is not put back: ", written.message()));
}

}  // namespace opmill
