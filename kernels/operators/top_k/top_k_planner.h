// Plans top_k for a slice of the sequences.
#ifndef OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_PLANNER_H_
#define OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_PLANNER_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/dims/iteration_space.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "kernels/plan/plan_builder.h"
#include "shaders/top_k_constants.h"

namespace opmill::top_k {

// Items that a group sorts.
inline uint64_t Capacity(DataType type) {
  return ElementBytes(type) == 8 ? TOP_K_WIDE_CAPACITY : TOP_K_NARROW_CAPACITY;
}

// SelectBest: items that a lane keeps in registers.
inline uint64_t LaneItems(DataType type, bool of_records) {
  const uint64_t bytes = ElementBytes(type);
  return TOP_K_LANE_VECTORS * kVectorBytes / (of_records ? std::max<uint64_t>(bytes, 4) : bytes);
}

// SelectBest: candidates that a group of so many lanes ranks or sorts, and lanes that it needs for
// k candidates. The counts of digits have the same memory.
inline uint64_t SelectCapacity(DataType type, uint64_t threads) {
  return threads * (ElementBytes(type) == 8 ? 2 : 4);
}
inline uint64_t LeastThreads(DataType type, uint64_t k) {
  return std::max<uint64_t>(1, std::bit_ceil(k) / SelectCapacity(type, 1));
}

// WalkChunks: the most items of a chunk, and whether an eighth of the lanes that fill the device
// get a chunk each. Not measured.
inline constexpr uint64_t kMaxWalked = 256;
inline bool AreEnoughToWalk(uint64_t chunks, const PlanOptions& options) {
  return chunks >= options.parallel_lanes() / 8;
}

// For constants, which have 32 bits.
inline uint32_t Narrow(uint64_t value) { return static_cast<uint32_t>(value); }

// The dimension along which the elements or ranks of a sequence lie.
inline SpaceDim Along(const IterationSpace& space) {
  return space.reduced.empty() ? SpaceDim() : space.reduced[0];
}

// How the best of a sequence are found.
enum class Method {
  kSort,    // a group sorts one or more sequences
  kSelect,  // groups or lanes select the best of chunks, until one chunk is left
  kRadix,   // many groups sort all elements
};

// What depends on the descriptor and the device alone.
struct Choice {
  Method method = Method::kSort;
  bool gathers = false;       // elements are apart and are copied first
  bool walks = false;         // kSelect: lanes select the best of chunks of elements, not groups
  uint64_t threads = 0;       // of a group; kSelect: at most
  uint64_t parts = 1;         // at most so many views hold a sequence
  uint64_t chunk_length = 0;  // kSelect: at most so many elements of a chunk; kRadix: so many
  uint64_t record_chunk = 0;  // kSelect: at most so many records of a chunk; kRadix: so many
  uint64_t skipped = 0;       // kSelect: at most so many elements of a vector before a chunk
  uint64_t row_stride = 0;    // gathers: elements from a sequence to the next
  uint64_t piece_length = 0;  // gathers: the most elements of a sequence at a time
};

// The most lanes of a group.
uint64_t MostThreads(const PlanOptions& options);

Choice Choose(const TopKDesc& desc, const IterationSpace& space, const PlanOptions& options);

// How many of the sequences a slice may have, so that its lists fit into views and into the share
// of scratch; 0 if not even one does.
uint64_t MostSequences(const TopKDesc& desc, const Choice& choice, const PlanOptions& options);

class Planner {
 public:
  Planner(PlanBuilder& builder, const TopKDesc& desc, const Choice& choice,
          const IterationSpace& space);

  // Adds all passes, from the elements to the results.
  void Plan();

 private:
  // Records of all sequences of the slice, one after another.
  struct List {
    uint64_t offset_bytes = 0;
    uint64_t length = 0;  // records of a sequence
  };
  // Elements of each sequence.
  struct Elements {
    BufferRole role = BufferRole::Input();
    uint64_t offset_bytes = 0;  // of element 0 of the space, in the buffer
    IterationSpace space;
  };
  // A range of a list, or of elements, that one view can hold.
  struct Part {
    BufferView view;
    TopKItems items = {};
    IterationSpace space;  // of elements
  };

  uint64_t record_bytes() const { return RecordBytes(type_); }
  static uint64_t RecordBytes(DataType type);

  KernelPermutation Kernel(const char* shader, const char* entry, uint64_t threads) const;
  static ShaderMacro SourceMacro(bool of_records);
  static ShaderMacro RecordsMacro() { return {"RESULT", uint32_t{RESULT_RECORDS}}; }
  ShaderMacro ResultMacro() const;  // into the outputs

  void Sort();
  void Select();
  void SortByRadix();

  // The elements of the slice, in pieces of the sequences that are gathered one at a time.
  std::vector<IterationSpace> Pieces() const;
  // Where the elements of a piece are read, after they are gathered if necessary.
  Elements ElementsOf(const IterationSpace& piece) const;
  void Gather(const IterationSpace& piece);

  // Chunks of about equal length, at most `most`: how many, and the length of all but the last.
  static std::pair<uint64_t, uint64_t> Chunks(uint64_t length, uint64_t most);

  List NewList(uint64_t length);
  BufferView ListView(const List& list, uint64_t first, uint64_t count) const;
  // In parts that views hold.
  std::vector<Part> ElementParts(const Elements& elements) const;
  std::vector<Part> ListParts(const List& list) const;

  // Ranks that the views of both outputs hold, and their views.
  std::vector<IterationSpace> RankParts() const;
  TopKOutputs WriteRanks(Dispatch& dispatch, const IterationSpace& ranks) const;

  // Records that are left of these parts.
  uint64_t SelectedRecords(const std::vector<Part>& parts, uint64_t chunk_length) const;
  // Selects from each part, into a list from `first_record` on.
  void SelectInto(const List& to, uint64_t first_record, const std::vector<Part>& parts,
                  bool of_records);
  // Selects from a part that is one chunk, into the outputs.
  void SelectResults(const Part& part, bool of_records);
  // A dispatch that selects from a part. `constants` has what depends on where results go.
  Dispatch SelectFrom(const Part& part, bool of_records, ShaderMacro result,
                      TopKChunkConstants constants) const;
  // Sorts parts by a digit, into a list, or, without one, into the outputs.
  void AddDigit(const std::vector<Part>& parts, bool of_records, uint32_t shift, const List* to);

  PlanBuilder& builder_;
  const TopKDesc& desc_;
  const Choice& choice_;
  const DataType type_;
  const uint64_t length_;
  const uint64_t k_;
  const uint64_t sequences_;
  const IterationSpace space_;
  uint64_t gathered_at_ = 0;  // in scratch
  BufferView counts_;         // kRadix
};

}  // namespace opmill::top_k

#endif  // OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_PLANNER_H_
