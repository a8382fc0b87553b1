// hardmax's second pass: stores 1 at the position that arg_reduce found for each result, and 0
// everywhere else.
#include "hardmax_constants.h"
#define KERNEL_CONSTANTS HardmaxConstants
#define LARGEST 1
#define NAN_FIRST 1
#include "include/candidate.hlsli"
#include "include/kept_dims.hlsli"
#include "include/task.hlsli"

#if DATA_TYPE == TYPE_FLOAT16
#define ONE_BITS 0x3C00u
#else
#define ONE_BITS 0x3F800000u
#endif

Buffer<uint4> Records : register(t0);  // arg_reduce's: key and position
#if STORE == STORE_ELEMENT
#define STORED_ELEMENTS 1
#define WORD_ELEMENTS 1
#define STORED_WORDS x
RWBuffer<uint> Output : register(u0);
#else
#define STORED_ELEMENTS VECTOR_ELEMENTS
#define WORD_ELEMENTS (VECTOR_ELEMENTS / 4)
#define STORED_WORDS xyzw
RWBuffer<uint4> Output : register(u0);
#endif

uint2 Better(uint2 a, uint2 b) { return CandidateBefore(b.x, b.y, a.x, a.y) ? b : a; }

// The offset of position `item` (row-major) of the reduced dimensions.
uint ReducedOutputOffset(uint item) {
  uint offset = 0;
  uint rest = item;
  [branch] if (c.reduced_rank > 1) {
    for (uint d = c.reduced_rank; d > 1; --d) {
      uint size = c.reduced[d - 1].size;
      offset += (rest % size) * c.reduced[d - 1].output_stride;
      rest /= size;
    }
  }
  return offset + rest * c.reduced[0].output_stride;
}

// The item of a result that is 1. More than one record is rare: an input of more than one view
// leaves them.
uint FindOne(uint result) {
  uint at = instance.read0 + result;
  uint2 best = Records[at].xy;
  [loop] for (uint record = 1; record < c.record_count; ++record) {
    at += c.record_stride;
    best = Better(best, Records[at].xy);
  }
  return best.y - c.first_position;
}

#if STORE == STORE_OF_COLUMNS
#define UNIT_RESULTS VECTOR_ELEMENTS
#define ITEM_ELEMENTS 1
#else
#define UNIT_RESULTS 1
#define ITEM_ELEMENTS STORED_ELEMENTS
#endif

// For each word of an item: at which position of the item its first element is 1, and, if it has two,
// its second one. The position of an item is that of its first element.
struct Ones {
  uint4 first;
  uint4 second;
};

Ones FindOnes(uint unit) {
  Ones ones = {(uint4)NOWHERE, (uint4)NOWHERE};
  uint one = FindOne(unit * UNIT_RESULTS);
  [unroll] for (uint e = 0; e < STORED_ELEMENTS; ++e) {
    uint of_element = UNIT_RESULTS == 1 ? one - e : FindOne(unit * UNIT_RESULTS + e);
    if (e % WORD_ELEMENTS == 0) ones.first[e / WORD_ELEMENTS] = of_element;
    ones.second[e / WORD_ELEMENTS] = of_element;
  }
  return ones;
}

uint4 Stored(Ones ones, uint position) {
  uint4 words = ones.first == position ? (uint4)ONE_BITS : (uint4)0;
  if (WORD_ELEMENTS == 2) words |= ones.second == position ? (uint4)(ONE_BITS << 16) : (uint4)0;
  return words;
}

[numthreads(THREADS, 1, 1)]
void WriteOnes(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  Task task = FindTask(EnterGroup(group), lane);
  Ones ones = FindOnes(task.unit);
  if (task.exists) {
    uint base = c.output_base + KeptOffsets(task.unit * UNIT_RESULTS).output;
    [loop] for (uint item = task.first; item < task.end; item += task.step) {
      uint position = item * ITEM_ELEMENTS;
      uint offset = base + ReducedOutputOffset(position);
      Output[instance.write0 + offset / STORED_ELEMENTS] = Stored(ones, position).STORED_WORDS;
    }
  }
}
