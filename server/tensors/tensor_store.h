// Tensors that stay on the server, so that later calls can name them.
#ifndef OPMILL_SERVER_TENSORS_TENSOR_STORE_H_
#define OPMILL_SERVER_TENSORS_TENSOR_STORE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/descriptor/tensor.h"
#include "kernels/engine/device.h"
#include "server/tensors/resident_memory.h"

namespace opmill {

// One state of a tensor. Immutable, and so are its bytes: a run that reads them keeps them, even if
// the tensor is written or deleted meanwhile.
struct ResidentTensor {
  std::string name;
  TensorDesc tensor;  // packed
  uint64_t generation = 0;
  uint64_t capacity_rows = 0;  // of the first dimension
  std::shared_ptr<ResidentMemory> memory;

  // Keeps the memory and its place in the limits.
  std::shared_ptr<Buffer> buffer() const;
};

// What is to become of an output.
struct ResidentWrite {
  enum class Kind {
    kPut,     // a new tensor, or a new one in place of the old one
    kAppend,  // rows behind the last one
    kWrite,   // rows in place of others
  };
  Kind kind = Kind::kPut;
  std::string owner;
  std::string name;
  uint64_t first_row = 0;      // of kWrite
  uint64_t capacity_rows = 0;  // of kPut; 0: as many as the output has
  // Only if the tensor has this generation; 0: only if there is none of that name.
  std::optional<uint64_t> if_generation;
  absl::Duration lease = absl::InfiniteDuration();  // of kPut: how long it stays unused
};

// Callers see the tensors of their owner, and the server's own, which they only read. Thread-safe.
class TensorStore {
 public:
  // A tensor as a list shows it.
  struct Listed {
    std::shared_ptr<const ResidentTensor> state;
    uint64_t bytes = 0;  // with what its capacity takes
    absl::Duration lease;
    absl::Duration left;  // of the lease
    bool is_lost = false;
    bool is_read_only = false;
  };
  struct Totals {
    uint64_t tensors = 0;
    uint64_t bytes = 0;    // with states that are only read
    uint64_t expired = 0;  // whose lease has ended, since the start
    uint64_t lost = 0;     // with the device, since the start, and not put back
  };
  // What became of the tensors that PutBack has read again.
  struct PutBackReport {
    uint64_t tensors = 0;
    uint64_t bytes = 0;
    std::vector<absl::Status> failures;  // sentences that name the tensor
  };
  class Writing;

  // `device` must outlive the store and all its buffers. With `keeps_copies`, callers' tensors have
  // a second place in the limits, for a copy from which PutBack restores them.
  TensorStore(Device& device, ResidentTensorLimits limits, bool keeps_copies = false);
  ~TensorStore();

  const ResidentTensorLimits& limits() const { return bytes_->limits(); }

  // Adds a tensor of the server itself, which every caller reads and no caller changes. `contents`
  // is called now, and after each loss of the device. To be called before callers put tensors.
  absl::Status Serve(const std::string& name, const TensorDesc& tensor, TensorContents contents)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The tensor as it is now; renews its lease.
  absl::StatusOr<std::shared_ptr<const ResidentTensor>> Find(absl::string_view owner,
                                                             absl::string_view name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Checks whether the write is possible now, and takes the memory that it needs. The write takes
  // place with its Finish, and not at all if it is dropped.
  absl::StatusOr<std::shared_ptr<Writing>> Begin(ResidentWrite write, const TensorDesc& output)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Delete(absl::string_view owner, absl::string_view name,
                      std::optional<uint64_t> if_generation) ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<Listed> List(absl::string_view owner) const ABSL_LOCKS_EXCLUDED(mutex_);
  Totals totals() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Deletes the tensors whose lease has ended.
  void DropExpired(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // The device has lost its memory: the tensors stay in the list, but cannot be read any more, or
  // not until they are put back.
  void DeviceLost() ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes the server's own tensors, and those with a copy, to new memory of the device. Takes as
  // long as reading them. One call at a time.
  PutBackReport PutBack() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    std::shared_ptr<const ResidentTensor> state;
    absl::Duration lease;
    absl::Time used;
    bool is_lost = false;
    TensorContents contents = nullptr;  // of the server's own, unless these are lost for good

    bool can_be_put_back() const;
    std::shared_ptr<absl::Mutex> writers = std::make_shared<absl::Mutex>();  // one at a time
  };
  struct Key {
    bool is_of_server = false;
    std::string owner;
    std::string name;

    friend auto operator<=>(const Key&, const Key&) = default;
    const std::string* owner_or_null() const { return is_of_server ? nullptr : &owner; }
  };
  using Entries = std::map<Key, Entry>;

  // Of that owner, or of the server.
  Entries::iterator Locate(const std::string& owner, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<ResidentMemory>> Allocate(const Key& key, uint64_t bytes);
  absl::Status CheckWritable(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static absl::Status LossOf(const Key& key, const Entry& entry);
  absl::Status Check(const ResidentWrite& write, const TensorDesc& output,
                     const Entry* entry) const;
  // What a write has made of the tensor.
  struct Written {
    uint64_t generation = 0;
    uint64_t rows = 0;
    uint64_t capacity_rows = 0;
  };
  static Written WrittenOf(const ResidentTensor& state);
  // The lock of those who write to the tensor; null if there is none of that name.
  std::shared_ptr<absl::Mutex> WritersOf(const Key& key) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Written> Put(Writing& writing) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Written> Change(Writing& writing, absl::Span<const std::byte> rows)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns its bytes; 0 if it was not put back, because it is gone, or the device is lost again.
  // An error is the tensor's, which is then lost for good.
  absl::StatusOr<uint64_t> PutBackOne(const Key& key) ABSL_LOCKS_EXCLUDED(mutex_);

  Device& device_;
  const bool keeps_copies_;
  const std::shared_ptr<ResidentBytes> bytes_;  // outlives the store, because runs may
  mutable absl::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_generation_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t expired_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t losses_ ABSL_GUARDED_BY(mutex_) = 0;  // of the device
};

// A write that has begun. Used by one thread at a time.
class TensorStore::Writing {
 public:
  Writing(TensorStore& store, ResidentWrite write, TensorDesc output,
          std::shared_ptr<ResidentMemory> memory, uint64_t losses)
      : store_(store),
        write_(std::move(write)),
        output_(std::move(output)),
        memory_(std::move(memory)),
        losses_(losses) {}

  // Where the output belongs; null if it is copied from a buffer of the execution.
  std::shared_ptr<Buffer> buffer() const;
  // `rows` are the bytes of the output, unless it is in buffer(). Copies, so it should not be
  // called on a thread with other duties.
  absl::Status Finish(absl::Span<const std::byte> rows);
  // 0 until Finish has succeeded. Then the tensor has this generation and these rows.
  uint64_t generation() const { return written_.generation; }
  uint64_t rows() const { return written_.rows; }
  uint64_t capacity_rows() const { return written_.capacity_rows; }

 private:
  friend class TensorStore;

  TensorStore& store_;
  const ResidentWrite write_;
  const TensorDesc output_;
  const std::shared_ptr<ResidentMemory> memory_;  // of kPut
  const uint64_t losses_;                         // of the device, before that was allocated
  Written written_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_TENSORS_TENSOR_STORE_H_
