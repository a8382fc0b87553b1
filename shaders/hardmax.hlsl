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
#define WORD_ELEMENTS (VECTOR_ELEMENTS / 4)

Buffer<uint4> Records : register(t0);  // arg_reduce's: key and position
#if STORE == STORE_ELEMENT
#define STORED 1
RWBuffer<uint> Output : register(u0);
#else
#define STORED VECTOR_ELEMENTS
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

#define ITEM_ELEMENTS 1
#define UNIT_RESULTS VECTOR_ELEMENTS

// The ones of a vector of results: of the first elements of its words, and of the second ones.
struct Ones {
  uint4 first;
  uint4 second;
};

Ones FindOnes(uint unit) {
  Ones ones;
  uint result = unit * VECTOR_ELEMENTS;
  [unroll] for (uint word = 0; word < 4; ++word) {
    ones.first[word] = FindOne(result + word * WORD_ELEMENTS);
    ones.second[word] =
        WORD_ELEMENTS == 2 ? FindOne(result + word * WORD_ELEMENTS + 1) : 0xFFFFFFFFu;
  }
  return ones;
}

uint4 Stored(Ones ones, uint item) {
  uint4 words = ones.first == item ? (uint4)ONE_BITS : (uint4)0;
#if WORD_ELEMENTS == 2
  words |= ones.second == item ? (uint4)(ONE_BITS << 16) : (uint4)0;
#endif
  return words;
}

#elif STORE == STORE_OF_ROW

#define Ones uint
#define FindOnes FindOne
#define ITEM_ELEMENTS VECTOR_ELEMENTS
#define UNIT_RESULTS 1

uint4 Stored(uint one, uint item) {
  uint element = one - item * VECTOR_ELEMENTS;
  uint bits = ONE_BITS << (element % WORD_ELEMENTS * 16);
  return uint4(0, 1, 2, 3) == element / WORD_ELEMENTS ? (uint4)bits : (uint4)0;
}

#else

#define Ones uint
#define FindOnes FindOne
#define ITEM_ELEMENTS 1
#define UNIT_RESULTS 1

uint Stored(uint one, uint item) { return item == one ? ONE_BITS : 0; }

#endif

[numthreads(THREADS, 1, 1)]
void WriteOnes(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  Task task = FindTask(EnterGroup(group), lane);
  Ones ones = FindOnes(task.unit);
  if (task.exists) {
    uint base = c.output_base + KeptOffsets(task.unit * UNIT_RESULTS).output;
    [loop] for (uint item = task.first; item < task.end; item += task.step) {
      uint offset = base + ReducedOutputOffset(item * ITEM_ELEMENTS);
      Output[instance.write0 + offset / STORED] = Stored(ones, item);
    }
  }
}
