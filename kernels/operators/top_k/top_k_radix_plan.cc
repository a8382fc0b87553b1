// top_k of so many elements that no group can sort them: a radix sort of all elements, digit by
// digit from the lowest one.
#include <algorithm>

#include "kernels/operators/top_k/top_k_planner.h"

namespace opmill::top_k {
namespace {

constexpr uint32_t kDigitBits = 8;
static_assert(TOP_K_DIGITS == 1 << kDigitBits);

constexpr uint64_t kLaneRanks = 8;  // that WriteResults writes

}  // namespace

void Planner::SortByRadix() {
  const uint32_t bits = 8 * ElementBytes(type_);
  if (choice_.gathers) {
    const uint64_t bytes = sequences_ * choice_.row_stride * ElementBytes(type_);
    gathered_at_ = builder_.ReserveRecords(bytes / kVectorBytes);
    Gather(space_);
  }
  List from;
  List to = NewList(length_);
  List spare = bits > kDigitBits ? NewList(length_) : List();
  const uint64_t chunks = CeilDiv(length_, choice_.chunk_length) + 2 * choice_.parts;
  const uint64_t counts = sequences_ * (chunks + 1) * TOP_K_DIGITS;
  counts_ = Records(builder_.ReserveRecords(CeilDiv(counts, 4)), CeilDiv(counts, 4));
  for (uint32_t shift = 0; shift < bits; shift += kDigitBits) {
    const bool is_last = shift + kDigitBits == bits;
    AddDigit(shift == 0 ? ElementParts(ElementsOf(space_)) : ListParts(from), shift > 0, shift, to,
             is_last ? k_ : length_);
    from = to;
    std::swap(to, spare);
  }
  WriteList(from);
}

void Planner::AddDigit(const std::vector<Part>& parts, bool of_records, uint32_t shift,
                       const List& to, uint64_t kept) {
  const uint64_t view = builder_.options().max_view_elements;
  uint64_t all_chunks = 0;
  for (const Part& part : parts) all_chunks += CeilDiv(part.items.length, choice_.chunk_length);
  const uint64_t digits = sequences_ * TOP_K_DIGITS;
  BufferView counts = InFormat(counts_, ViewFormat::kUint32);
  counts.element_count = digits * (all_chunks + 1);

  const auto kernel = [&](const char* shader, const char* entry) {
    KernelPermutation permutation = Kernel(shader, entry, choice_.threads);
    permutation.macros.push_back(SourceMacro(of_records));
    return builder_.Kernel(std::move(permutation));
  };
  std::vector<Dispatch> scatters;
  uint64_t first_chunk = 0;
  for (const Part& part : parts) {
    TopKRadixConstants constants = {};
    SetDims(part.space.kept, constants.kept, constants.kept_rank);
    const uint64_t chunks = CeilDiv(part.items.length, choice_.chunk_length);
    constants.groups.unit_count = Narrow(sequences_ * chunks);
    constants.items = part.items;
    constants.sequences = Narrow(sequences_);
    constants.chunks = Narrow(chunks);
    constants.chunk_length = Narrow(choice_.chunk_length);
    constants.first_chunk = Narrow(first_chunk);
    constants.all_chunks = Narrow(all_chunks);
    constants.shift = shift;
    constants.list_stride = Narrow(to.length);
    first_chunk += chunks;
    Dispatch count;
    count.kernel = kernel("top_k_count", "CountDigits");
    count.reads[0] = part.view;
    count.writes[0] = counts;
    count.constants = constants;
    SetGroups(count, sequences_ * chunks);
    builder_.Add(std::move(count));
    // Each view of the list gets the items that belong there.
    const uint64_t most = sequences_ * to.length <= view ? to.length : view / 2 * 2;
    for (uint64_t first = 0; first < kept; first += most) {
      constants.first_record = Narrow(first);
      constants.record_count = Narrow(std::min(most, kept - first));
      Dispatch scatter;
      scatter.kernel = kernel("top_k_scatter", "ScatterItems");
      scatter.reads = {part.view, counts};
      scatter.writes[0] =
          ListView(to, first, (sequences_ - 1) * to.length + constants.record_count);
      scatter.constants = constants;
      SetGroups(scatter, sequences_ * chunks);
      scatters.push_back(std::move(scatter));
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

void Planner::WriteList(const List& list) {
  KernelPermutation kernel = Kernel("top_k_write", "WriteResults", choice_.threads);
  kernel.macros.push_back(ResultMacro());
  const uint64_t records = sequences_ * list.length;
  for (const IterationSpace& ranks : RankParts()) {
    const uint64_t count = ranks.position_count();
    Dispatch dispatch;
    dispatch.kernel = builder_.Kernel(kernel);
    TopKWriteConstants constants = {};
    SetDims(space_.kept, constants.kept, constants.kept_rank);
    constants.outputs = WriteRanks(dispatch, ranks);
    // Views start at a multiple of 16 bytes.
    const uint64_t first =
        records <= builder_.options().max_view_elements ? 0 : ranks.first_position / 2 * 2;
    constants.first_record = Narrow(ranks.first_position - first);
    dispatch.reads[0] =
        ListView(list, first, (sequences_ - 1) * list.length + constants.first_record + count);
    const uint64_t block = kLaneRanks * choice_.threads;
    constants.blocks = Narrow(CeilDiv(count, block));
    constants.block_length = Narrow(block);
    constants.rank_count = Narrow(count);
    constants.list_stride = Narrow(list.length);
    const uint64_t groups = sequences_ * constants.blocks;
    constants.groups.unit_count = Narrow(groups);
    dispatch.constants = constants;
    SetGroups(dispatch, groups);
    builder_.Add(std::move(dispatch));
  }
}

}  // namespace opmill::top_k
