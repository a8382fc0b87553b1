// Memory that runs read and write.
#ifndef OPMILL_KERNELS_ENGINE_BUFFERS_H_
#define OPMILL_KERNELS_ENGINE_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/engine/program_report.h"
#include "kernels/program/placement.h"

namespace opmill {

// Who uses a buffer. On an adapter with its own memory, a run copies what is in the others to it
// and from it; what is in a device buffer stays there.
enum class Residency : uint32_t {
  kUpload,    // the host writes, runs read
  kReadback,  // runs write, the host reads
  kDevice,    // runs write and read
};

// Memory of a device. Not necessarily zeroed.
class Buffer {
 public:
  virtual ~Buffer() = default;
  uint64_t size_bytes() const { return size_bytes_; }
  Residency residency() const { return residency_; }
  // All of it; empty if the host has no access, as to a device buffer in the adapter's own memory.
  // Of a readback buffer, valid until the next run that writes to it.
  virtual absl::Span<std::byte> bytes() = 0;

 protected:
  Buffer(uint64_t size_bytes, Residency residency)
      : size_bytes_(size_bytes), residency_(residency) {}

 private:
  const uint64_t size_bytes_;
  const Residency residency_;
};

// A part of a buffer, which it keeps alive. The offset is a multiple of kPlacementAlignment. A run
// that writes to a range may change the bytes up to the next multiple of the alignment.
struct Range {
  Range() = default;
  Range(std::shared_ptr<Buffer> whole)  // NOLINT(google-explicit-constructor)
      : buffer(std::move(whole)), size_bytes(buffer == nullptr ? 0 : buffer->size_bytes()) {}
  Range(std::shared_ptr<Buffer> part_of, uint64_t offset, uint64_t size)
      : buffer(std::move(part_of)), offset_bytes(offset), size_bytes(size) {}

  // `buffer` must have host bytes.
  absl::Span<std::byte> bytes() const {
    return buffer->bytes().subspan(static_cast<size_t>(offset_bytes),
                                   static_cast<size_t>(size_bytes));
  }

  std::shared_ptr<Buffer> buffer;
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
};

// Ranges of buffers of the same device for the program's inputs and outputs, at least as large as
// the RequiredBytes of their tensors. The run keeps them and the compiled program alive until its
// callback has returned. Until then nothing else may write what it reads, or use what it writes: a
// run that reads what another one writes starts after that one's callback.
struct Bindings {
  std::vector<Range> inputs;
  std::vector<Range> outputs;
  // Gets what the device measures, before the callback of a run that succeeds; null: nothing.
  std::shared_ptr<RunProfile> profile = nullptr;
};

// Returns InvalidArgument if a range is missing, is not within its buffer, is not aligned, has
// fewer bytes than given here, or is in a buffer for the other direction, or if an output overlaps
// another range.
absl::Status CheckBindings(const Bindings& bindings, absl::Span<const uint64_t> input_bytes,
                           absl::Span<const uint64_t> output_bytes);

// The device whose memory held this device buffer ("inputs[0]") is lost.
absl::Status LostBufferError(absl::string_view name);

}  // namespace opmill

#endif  // OPMILL_KERNELS_ENGINE_BUFFERS_H_
