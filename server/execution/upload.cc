#include "server/execution/upload.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"

namespace opmill {

Upload::Upload(const Program& program, absl::Span<const InputSource> sources) {
  const OperatorDesc* const desc = OperatorOf(program);
  name_ = desc == nullptr ? "the model" : OperatorName(*desc);
  for (const ProgramValue& value : program.values) {
    if (value.kind != ValueKind::kInput) continue;
    const size_t i = inputs_.size();
    Input& input = inputs_.emplace_back();
    if (i < sources.size() && sources[i].resident != nullptr) continue;
    input = {.bytes = SpannedBytes(value.tensor),
             .buffer_bytes = RequiredBytes(value.tensor),
             .is_read = i < sources.size() && sources[i].read != nullptr};
    bytes_ += input.bytes;
    if (!input.is_read) missing_chunk_bytes_ += input.bytes;
  }
}

absl::Status Upload::Check(const IncomingChunk& chunk, absl::string_view field) const {
  const size_t index = chunk.tensor_index;
  if (index >= inputs_.size()) {
    const std::string path = absl::StrCat(field, ".tensor_index");
    return InvalidField(path,
                        absl::StrCat(path, " (", index, ") is not below the number of inputs (",
                                     inputs_.size(), ") of ", name_, "."));
  }
  const Input& input = inputs_[index];
  if (input.received == input.bytes) {
    return InvalidField(field, absl::StrCat(field, " comes after the end of input ", index,
                                            ": all of its ", input.bytes, " bytes have arrived."));
  }
  if (chunk.offset > input.received) {
    const std::string path = absl::StrCat(field, ".offset");
    return InvalidField(path, absl::StrCat(path, " (", chunk.offset, ") leaves out bytes ",
                                           input.received, " to ", chunk.offset - 1, " of input ",
                                           index, "; chunks of a tensor come in order."));
  }
  if (chunk.offset < input.received) {
    const std::string path = absl::StrCat(field, ".offset");
    return InvalidField(path, absl::StrCat(path, " (", chunk.offset,
                                           ") overlaps bytes that have arrived: the next chunk of "
                                           "input ",
                                           index, " starts at byte ", input.received, "."));
  }
  if (chunk.data.size() > input.buffer_bytes - input.received) {
    return InvalidField(
        absl::StrCat(field, ".data"),
        absl::StrCat(field, " ends at byte ", input.received + chunk.data.size(),
                     ", past the end of input ", index, ", which has ", input.bytes, " bytes."));
  }
  return absl::OkStatus();
}

void Upload::Add(const IncomingChunk& chunk) {
  if (inputs_.empty()) return;
  Input& input = inputs_[chunk.tensor_index];
  const uint64_t after = std::min(input.received + chunk.data.size(), input.bytes);
  received_ += after - input.received;
  if (!input.is_read) missing_chunk_bytes_ -= after - input.received;
  input.received = after;
}

absl::Status Upload::Missing(absl::string_view what) const {
  const auto lacking = std::find_if(inputs_.begin(), inputs_.end(), [](const Input& input) {
    return !input.is_read && input.received < input.bytes;
  });
  return InvalidField("chunks",
                      absl::StrCat(what, " with ", lacking->received, " of the ", lacking->bytes,
                                   " bytes of input ", lacking - inputs_.begin(), "; ",
                                   lacking->bytes - lacking->received, " are missing."));
}

}  // namespace opmill
