// What the checkers of top_k's kernels share.
#ifndef OPMILL_TESTS_FUZZ_TOP_K_CHECKER_H_
#define OPMILL_TESTS_FUZZ_TOP_K_CHECKER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>

#include "shaders/top_k_constants.h"
#include "tests/fuzz/dispatch_checker.h"

namespace opmill {

class TopKChecker : public DispatchChecker {
 public:
  using DispatchChecker::DispatchChecker;

 protected:
  uint64_t key_step() const { return wide_ ? 2 : 4; }

  // All elements of all sequences of the part, and `more` behind each.
  void ReadsSequences(const TopKPart& part, absl::Span<const Dim> kept, uint64_t more = 0) {
    Demand(part.length > 0, "has empty sequences");
    if (!mistake_.empty()) return;
    ReadsElement(part.input_base + Span(kept, &Dim::input_stride) +
                 uint64_t{part.length - 1} * part.element_stride + more);
  }

  void NeedRows(const TopKPart& part) {
    Demand(part.length == 1 || part.element_stride == 1, "takes strides for rows");
  }

  // Adjacent sequences, each row of which starts at a vector.
  void NeedColumns(const TopKPart& part, absl::Span<const Dim> outer) {
    const uint64_t along = part.length == 1 ? 0 : part.element_stride;
    Demand(AlignmentOf(part.input_base, outer) == vector_ && along % vector_ == 0,
           "takes rows that start inside vectors");
  }

  // Rows: the most elements before the first one of a sequence in its vector.
  uint64_t MostBefore(const TopKPart& part, absl::Span<const Dim> kept) const {
    bool is_same_everywhere = true;
    uint64_t alignment = std::gcd(uint64_t{part.input_base}, vector_);
    for (const Dim& dim : kept) {
      if (dim.size == 1 || dim.input_stride % vector_ == 0) continue;
      is_same_everywhere = false;
      alignment = std::gcd(alignment, uint64_t{dim.input_stride});
    }
    return is_same_everywhere ? part.input_base % vector_ : vector_ - alignment;
  }

  // The blocks of a part must cover its sequences.
  template <typename T>
  void CoversSequences(const T& c, uint64_t before) {
    Demand(uint64_t{c.block_count} * c.block_length >= c.part.length + before,
           "leaves elements out of its blocks");
  }

  // The largest position of the key of block 0 of a sequence. The words of columns may be in any
  // order within their vector.
  uint64_t LastKeyBase(const TopKKeys& keys, uint64_t sequences, uint64_t layout) const {
    if (layout != LAYOUT_COLUMNS) return (sequences - 1) * keys.sequence_stride;
    return (sequences / std::max(1u, keys.columns) - 1) * keys.sequence_stride +
           RoundUp(keys.columns, vector_) - 1;
  }

  // Keys of `count` blocks of every sequence, as top_k_block_keys.hlsli finds them.
  void ReadsKeys(const TopKKeys& keys, uint64_t sequences, uint64_t count, uint64_t layout) {
    Demand(count <= keys.length, "reads more keys than there are");
    const uint64_t last_block = RoundUp(count, key_step()) - 1;
    if (layout == LAYOUT_COLUMNS) {
      Demand(keys.columns > 0 && sequences % keys.columns == 0, "has other columns");
      if (!mistake_.empty()) return;
    } else if (layout == LAYOUT_ROWS) {
      Demand(keys.sequence_stride % key_step() == 0 && keys.item_stride == 1,
             "cuts vectors of keys");
    }
    const uint64_t last = LastKeyBase(keys, sequences, layout) + last_block * keys.item_stride;
    Demand(last <= kMost, "counts keys past 32 bits");
    Within(last / key_step(), read(1), "the keys");
  }

  void UsesHeaders(uint64_t sequences) {
    Within(sequences * TOP_K_HEADER_WORDS - 1, write(1), "the headers");
  }

  // Lanes take several units, one after another.
  void NeedGroupsInTurns() { NeedGroups(CeilDiv(groups_.unit_count, GroupUnits())); }

  void StoresRanks(const TopKOutputs& outputs, const TopKPart& part, absl::Span<const Dim> kept,
                   uint64_t sequences, uint64_t ranks) {
    Within(
        outputs.values_base + Span(kept, &Dim::output_stride) + (ranks - 1) * outputs.value_stride,
        write(0), "the values");
    Within(
        outputs.indices_base + Span(kept, &Dim::index_stride) + (ranks - 1) * outputs.index_stride,
        write(1), "the indices");
    written_ = sequences * ranks * part.length;
  }
};

// For the kernels that select by cuts, and those that rank.
std::unique_ptr<DispatchChecker> MakeTopKSelectionChecker(const OperatorPlan& plan,
                                                          const Dispatch& dispatch, uint32_t k);

}  // namespace opmill

#endif  // OPMILL_TESTS_FUZZ_TOP_K_CHECKER_H_
