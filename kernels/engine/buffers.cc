#include "kernels/engine/buffers.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

// Returns the words that follow the name of the range; empty if it is valid.
std::string WrongWith(const Range& range, uint64_t needed_bytes, Residency of_other_direction) {
  const uint64_t size = range.buffer == nullptr ? 0 : range.size_bytes;
  const uint64_t offset = range.offset_bytes;
  if (range.buffer == nullptr || size < needed_bytes) {
    return absl::StrCat(" has ", size, " bytes, and needs ", needed_bytes, ".");
  }
  if (range.buffer->residency() == of_other_direction) {
    return absl::StrCat(" is in a buffer for ",
                        of_other_direction == Residency::kUpload ? "inputs." : "outputs.");
  }
  if (offset % kPlacementAlignment != 0) {
    return absl::StrCat(" starts at byte ", offset, " of its buffer, which is not a multiple of ",
                        kPlacementAlignment, ".");
  }
  const uint64_t limit = range.buffer->size_bytes();
  if (offset <= limit && size <= limit - offset) return "";
  return absl::StrCat(" has ", size, " bytes from byte ", offset, " of a buffer of ", limit,
                      " bytes.");
}

absl::Status CheckRanges(absl::string_view list, absl::Span<const Range> ranges,
                         absl::Span<const uint64_t> needed_bytes, Residency of_other_direction) {
  if (ranges.size() != needed_bytes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("The program has ", needed_bytes.size(), " ",
                                                   list, ", but ", ranges.size(), " are given."));
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    const std::string wrong = WrongWith(ranges[i], needed_bytes[i], of_other_direction);
    if (!wrong.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(list, "[", i, "]", wrong));
    }
  }
  return absl::OkStatus();
}

bool Overlap(const Range& a, const Range& b) {
  return a.buffer == b.buffer && a.offset_bytes < b.offset_bytes + b.size_bytes &&
         b.offset_bytes < a.offset_bytes + a.size_bytes;
}

absl::Status CheckOverlap(const Range& output, size_t index, absl::string_view list,
                          absl::Span<const Range> others) {
  for (size_t i = 0; i < others.size(); ++i) {
    if (!Overlap(output, others[i])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("outputs[", index, "] overlaps ", list, "[", i, "]."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckBindings(const Bindings& bindings, absl::Span<const uint64_t> input_bytes,
                           absl::Span<const uint64_t> output_bytes) {
  RETURN_IF_ERROR(CheckRanges("inputs", bindings.inputs, input_bytes, Residency::kReadback));
  RETURN_IF_ERROR(CheckRanges("outputs", bindings.outputs, output_bytes, Residency::kUpload));
  const absl::Span<const Range> outputs = bindings.outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    RETURN_IF_ERROR(CheckOverlap(outputs[i], i, "inputs", bindings.inputs));
    RETURN_IF_ERROR(CheckOverlap(outputs[i], i, "outputs", outputs.first(i)));
  }
  return absl::OkStatus();
}

absl::Status LostBufferError(absl::string_view name) {
  return absl::UnavailableError(absl::StrCat(name, " was in the memory of a device that is lost."));
}

}  // namespace opmill
