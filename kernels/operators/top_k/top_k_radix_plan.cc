// top_k of so many elements that no group can sort them: a radix sort of all elements, digit by
// digit from the lowest one.
#include <algorithm>

#include "kernels/operators/top_k/top_k_planner.h"

namespace opmill::top_k {
namespace {

constexpr uint32_t kDigitBits = 8;
static_assert(TOP_K_DIGITS == 1 << kDigitBits);

}  // namespace

void Planner::SortByRadix() {
  const uint32_t bits = 8 * ElementBytes(type_);
  if (choice_.gathers) {
    const uint64_t bytes = sequences_ * choice_.row_stride * ElementBytes(type_);
    gathered_at_ = builder_.ReserveRecords(bytes / kVectorBytes);
    Gather(space_);
  }
  // The lists that passes read and write in turns.
  List from = bits > kDigitBits ? NewList(length_) : List();
  List to = bits > 2 * kDigitBits ? NewList(length_) : List();
  const uint64_t chunks = CeilDiv(length_, choice_.chunk_length) + 2 * choice_.parts;
  const uint64_t counts = sequences_ * (chunks + 1) * TOP_K_DIGITS;
  counts_ = Records(builder_.ReserveRecords(CeilDiv(counts, 4)), CeilDiv(counts, 4));
  for (uint32_t shift = 0; shift < bits; shift += kDigitBits) {
    std::swap(from, to);
    AddDigit(shift == 0 ? ElementParts(ElementsOf(space_)) : ListParts(from), shift > 0, shift,
             shift + kDigitBits < bits ? &to : nullptr);
  }
}

void Planner::AddDigit(const std::vector<Part>& parts, bool of_records, uint32_t shift,
                       const List* to) {
  const uint64_t view = builder_.options().max_view_elements;
  uint64_t all_chunks = 0;
  for (const Part& part : parts) all_chunks += CeilDiv(part.items.length, choice_.chunk_length);
  const uint64_t digits = sequences_ * TOP_K_DIGITS;
  BufferView counts = InFormat(counts_, ViewFormat::kUint32);
  counts.element_count = digits * (all_chunks + 1);

  KernelPermutation counting = Kernel("top_k_count", "CountDigits", choice_.threads);
  counting.macros.push_back(SourceMacro(of_records));
  KernelPermutation scattering = Kernel("top_k_scatter", "ScatterItems", choice_.threads);
  scattering.macros.push_back(SourceMacro(of_records));
  scattering.macros.push_back(to != nullptr ? RecordsMacro() : ResultMacro());
  std::vector<Dispatch> scatters;
  uint64_t first_chunk = 0;
  for (const Part& part : parts) {
    TopKChunkConstants constants = {};
    SetDims(part.space.kept, constants.kept, constants.kept_rank);
    const uint64_t chunks = CeilDiv(part.items.length, choice_.chunk_length);
    constants.groups.unit_count = Narrow(sequences_ * chunks);
    constants.items = part.items;
    constants.chunks = Narrow(chunks);
    constants.chunk_length = Narrow(choice_.chunk_length);
    constants.first_chunk = Narrow(first_chunk);
    constants.all_chunks = Narrow(all_chunks);
    constants.shift = shift;
    first_chunk += chunks;
    Dispatch count;
    count.kernel = builder_.Kernel(counting);
    count.reads[0] = part.view;
    count.writes[0] = counts;
    count.constants = constants;
    SetGroups(count, sequences_ * chunks);
    builder_.Add(std::move(count));
    const auto scatter = [&](uint64_t first, uint64_t ranks, const Dispatch& written) {
      constants.ranks = {
          .first = Narrow(first), .count = Narrow(ranks), .k = Narrow(k_), .unused = 0};
      Dispatch& dispatch = scatters.emplace_back(written);
      dispatch.kernel = builder_.Kernel(scattering);
      dispatch.reads = {part.view, counts};
      dispatch.constants = constants;
      SetGroups(dispatch, sequences_ * chunks);
    };
    // Each view gets the items that belong there.
    Dispatch written;
    if (to == nullptr) {
      for (const IterationSpace& ranks : RankParts()) {
        constants.outputs = WriteRanks(written, ranks);
        scatter(ranks.first_position, ranks.position_count(), written);
      }
      continue;
    }
    constants.record_stride = Narrow(to->length);
    const uint64_t most = sequences_ * to->length <= view ? to->length : view / 2 * 2;
    for (uint64_t first = 0; first < to->length; first += most) {
      const uint64_t ranks = std::min(most, to->length - first);
      written.writes[0] = ListView(*to, first, (sequences_ - 1) * to->length + ranks);
      scatter(first, ranks, written);
    }
  }
  builder_.NextPass();
  Dispatch scan;
  scan.kernel =
      builder_.Kernel({"top_k_scan", "ScanCounts", {{"THREADS", Narrow(choice_.threads)}}});
  scan.writes[0] = counts;
  TopKScanConstants constants = {};
  constants.groups.unit_count = Narrow(digits);
  constants.all_chunks = Narrow(all_chunks);
  scan.constants = constants;
  SetGroups(scan, digits);
  builder_.Add(std::move(scan));
  builder_.NextPass();
  for (Dispatch& scatter : scatters) builder_.Add(std::move(scatter));
  builder_.NextPass();
}

}  // namespace opmill::top_k
