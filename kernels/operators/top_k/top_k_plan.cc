// top_k: chooses how the best are found, and plans slices whose lists fit into scratch.
#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "kernels/operators/top_k/top_k_planner.h"
#include "kernels/plan/fold.h"

namespace opmill {
namespace top_k {
namespace {

// Sequences of up to this length that are not walked are sorted as a whole, even for a small k;
// longer ones if more than one in kSortedShare elements is wanted.
constexpr uint64_t kMaxShort = 64;
constexpr uint64_t kSortedShare = 4;

// Short sequences whose elements are apart are read in place up to this length: then a group has
// enough adjacent sequences for whole cache lines.
constexpr uint64_t kMaxAcross = 128;

// Chunks of columns are walked if at least so many columns are adjacent. Longer rows are read
// better by lanes that read adjacent memory.
constexpr uint64_t kMinAdjacent = 32;

// Scratch for a list of one slice, in records, and for gathered elements, in bytes. What is
// gathered is read once more, from the last cache of a large GPU if it fits.
constexpr uint64_t kMaxSelectedRecords = uint64_t{1} << 23;
constexpr uint64_t kMaxGatheredBytes = uint64_t{64} << 20;

constexpr uint64_t kMinLanes = 32;  // of a group: two for each team

// At most so many views hold a sequence of the input, or its elements after they are gathered.
uint64_t ViewParts(uint64_t span, DataType type, const PlanOptions& options) {
  return MostParts(span, LimitsFor(type, type, options).elements[kInputTensor]);
}

// True if all sequences start where vectors do.
bool IsAligned(const IterationSpace& space, const Choice& choice, uint64_t vector_elements) {
  if (choice.parts > 1) return false;
  return choice.gathers || std::ranges::all_of(space.kept, [&](const SpaceDim& dim) {
           return dim.strides[kInputTensor] % vector_elements == 0;
         });
}

// Records of the first list.
uint64_t SelectedRecords(uint64_t length, uint64_t k, uint64_t chunk_length, uint64_t parts) {
  return (CeilDiv(length, chunk_length) + (parts > 1 ? 2 * parts : 0)) * k;
}

bool Walks(const TopKDesc& desc, const IterationSpace& space, bool is_row, uint64_t parts,
           const PlanOptions& options) {
  const uint64_t length = desc.input.sizes[desc.axis];
  if (desc.k > TOP_K_MOST_WALKED) return false;
  if (length > kMaxWalked || parts > 1) {
    if (is_row || space.kept.empty()) return false;
    const SpaceDim& last = space.kept.back();
    const uint64_t records = SelectedRecords(length, desc.k, kMaxWalked, parts);
    if (last.strides[kInputTensor] != 1 || last.size < kMinAdjacent ||
        records > kMaxSelectedRecords / kMinAdjacent) {
      return false;
    }
  }
  return AreEnoughToWalk(space.results() * CeilDiv(length, kMaxWalked), options);
}

}  // namespace

uint64_t MostThreads(const PlanOptions& options) {
  return std::bit_floor(std::clamp<uint64_t>(2 * uint64_t{options.threads}, kMinLanes, 512));
}

Choice Choose(const TopKDesc& desc, const IterationSpace& space, const PlanOptions& options) {
  const DataType type = desc.input.data_type;
  const uint64_t bytes = ElementBytes(type);
  const uint64_t capacity = Capacity(type);
  const uint64_t length = desc.input.sizes[desc.axis];
  const uint64_t k = desc.k;
  const bool is_row = length == 1 || space.reduced[0].strides[kInputTensor] == 1;
  const uint64_t parts = ViewParts(SpanOf(space.reduced, kInputTensor) + 1, type, options);
  Choice choice = {.threads = MostThreads(options), .parts = parts};
  const bool sorts = is_row
                         ? length <= kMaxShort || (length <= capacity && k > length / kSortedShare)
                         : length <= kMaxAcross;
  choice.walks = Walks(desc, space, is_row, parts, options);
  if (sorts && parts == 1 && !choice.walks) return choice;
  choice.gathers = !is_row && !choice.walks;
  choice.method = k <= capacity ? Method::kSelect : Method::kRadix;
  if (choice.gathers) {
    choice.parts = ViewParts(length, type, options);
    choice.row_stride = RoundUp(length, kVectorBytes);
    if (choice.method == Method::kSelect) {
      choice.piece_length = kMaxGatheredBytes / bytes;
      choice.row_stride = std::min(choice.row_stride, choice.piece_length);
      // Repeated halving leaves pieces of more than half of the limit.
      choice.parts = std::max(choice.parts, CeilDiv(length, choice.piece_length / 2));
    }
  }
  if (choice.method == Method::kSelect) {
    choice.threads = std::max(choice.threads, LeastThreads(type, k));
    const uint64_t vector_elements = kVectorBytes / bytes;
    choice.skipped = IsAligned(space, choice, vector_elements) ? 0 : kVectorBytes;
    choice.chunk_length =
        choice.walks ? kMaxWalked : choice.threads * LaneItems(type, false) - choice.skipped;
    choice.record_chunk = std::min(choice.threads * LaneItems(type, true),
                                   options.max_view_elements / kVectorBytes * kVectorBytes);
    return choice;
  }
  choice.chunk_length = std::min(4 * capacity, std::bit_floor(options.max_view_elements));
  // The counts of all chunks must fit into a view.
  while ((CeilDiv(length, choice.chunk_length) + 2 * choice.parts) * TOP_K_DIGITS >
         options.max_view_elements) {
    choice.chunk_length *= 2;
    if (choice.chunk_length > length) break;
  }
  choice.record_chunk = choice.chunk_length;
  return choice;
}

uint64_t MostSequences(const TopKDesc& desc, const Choice& choice, const PlanOptions& options) {
  const uint64_t length = desc.input.sizes[desc.axis];
  const uint64_t view = options.max_view_elements;
  if (choice.method == Method::kSort) return kMaxLanes / choice.threads;
  const uint64_t chunks = CeilDiv(length, choice.chunk_length) + 2 * choice.parts;
  uint64_t most = kMaxLanes / (choice.walks ? 1 : choice.threads) / chunks;
  if (choice.gathers) {
    const uint64_t bytes = choice.row_stride * ElementBytes(desc.input.data_type);
    const uint64_t fitting = std::min(view / choice.row_stride, kMaxGatheredBytes / bytes);
    most = std::min(most, std::max<uint64_t>(1, fitting));
  }
  if (choice.method == Method::kSelect) {
    if (length <= choice.chunk_length && choice.parts == 1) return most;
    const uint64_t records = SelectedRecords(length, desc.k, choice.chunk_length, choice.parts);
    if (records > choice.record_chunk && 2 * desc.k > choice.record_chunk) return 0;
    const uint64_t fitting = std::min(view, kMaxSelectedRecords) / records;
    return std::min(most, std::max<uint64_t>(1, fitting));
  }
  const uint64_t counts = (chunks + 1) * TOP_K_DIGITS;
  if (counts > view || choice.chunk_length > view) return 0;
  const uint64_t lists = std::min(view, kMaxSelectedRecords) / length;
  return std::min({most, view / counts, std::max<uint64_t>(1, lists)});
}

}  // namespace top_k

absl::Status PlanTopK(PlanBuilder& builder, const OperatorDesc& operator_desc) {
  const TopKDesc desc = TopKDesc::From(operator_desc);
  const PlanOptions& options = builder.options();
  FillGaps(builder, BufferRole::Output(), *desc.output_values);
  FillGaps(builder, BufferRole::Output(1), *desc.output_indices);
  builder.NextPass();
  IterationSpace space = MakeIterationSpace(desc.input, {desc.axis}, *desc.output_values,
                                            &*desc.output_indices, ReducedOrder::kRowMajor);
  // Ranks have their own output strides; see RankParts.
  for (SpaceDim& dim : space.reduced) dim.strides[kOutputTensor] = dim.strides[kIndicesTensor] = 0;

  const top_k::Choice choice = top_k::Choose(desc, space, options);
  const DataType type = desc.input.data_type;
  SliceLimits limits = LimitsFor(type, type, options);
  limits.elements[kIndicesTensor] =
      LimitsFor(type, desc.output_indices->data_type, options).elements[kOutputTensor];
  limits.results = top_k::MostSequences(desc, choice, options);
  if (limits.results == 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("top_k with k (", desc.k, ") of ", desc.input.sizes[desc.axis],
                     " elements has lists that do not fit into views of ",
                     options.max_view_elements, " elements."));
  }
  for (const IterationSpace& slice : SliceKept(space, limits)) {
    if (builder.full()) break;
    // Slices with scratch run one after another, so they may share it.
    const uint64_t mark = builder.Mark();
    top_k::Planner(builder, desc, choice, slice).Plan();
    if (builder.Mark() != mark) builder.NextPass();
    builder.Release(mark);
  }
  return absl::OkStatus();
}

}  // namespace opmill
