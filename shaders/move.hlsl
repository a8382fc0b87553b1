// Moves elements. A lane finds the source and the destination of one element.
//   Move     reads where the rules and the index tensor say, and writes where the walk is
//   Mark     notes for each place of the output the last step that writes there
//   Scatter  writes where the index tensor says, if Mark has noted this step
//   ELEMENT_BYTES  1, 2, 4, 8 or 16
//   INDEXED        1: there is an index tensor
#include "move_constants.h"
#define KERNEL_CONSTANTS MoveConstants
#include "include/dispatch.hlsli"

Buffer<uint4> Input : register(t0);
#if INDEXED
Buffer<uint4> Indices : register(t1);
#endif

#ifdef MARKS_ONLY
RWBuffer<uint> Marks : register(u0);
#else
#if ELEMENT_BYTES == 16
#define BITS uint4
#elif ELEMENT_BYTES == 8
#define BITS uint2
#else
#define BITS uint
#endif
RWBuffer<BITS> Output : register(u0);
#ifdef SCATTERS
RWBuffer<uint> Marks : register(u1);
#endif
#endif

// v[word], where `word` is not known to the compiler.
uint WordOf(uint4 v, uint word) {
  uint low = (word & 1) != 0 ? v.y : v.x;
  uint high = (word & 1) != 0 ? v.w : v.z;
  return (word & 2) != 0 ? high : low;
}

#ifndef MARKS_ONLY
BITS ElementAt(uint at) {
  uint4 v = Input[instance.read0 + at / (16 / ELEMENT_BYTES)];
#if ELEMENT_BYTES == 16
  return v;
#elif ELEMENT_BYTES == 8
  return (at & 1) != 0 ? v.zw : v.xy;
#elif ELEMENT_BYTES == 4
  return WordOf(v, at & 3);
#elif ELEMENT_BYTES == 2
  return (WordOf(v, at >> 1 & 3) >> ((at & 1) * 16)) & 0xFFFFu;
#else
  return (WordOf(v, at >> 2 & 3) >> ((at & 3) * 8)) & 0xFFu;
#endif
}

BITS Constant() {
#if ELEMENT_BYTES == 16
  return uint4(c.constant0, c.constant1, c.constant2, c.constant3);
#elif ELEMENT_BYTES == 8
  return uint2(c.constant0, c.constant1);
#elif ELEMENT_BYTES == 4
  return c.constant0;
#else
  // What does not fit a view of small elements would be saturated.
  return c.constant0 & ((1u << (8 * ELEMENT_BYTES)) - 1u);
#endif
}
#endif

struct Place {
  uint input;
  uint output;
  uint index;
  uint along;     // the step along MOVE_REVERSED or MOVE_ORDER
  int diagonal;
  bool inside;    // of the input
  bool is_valid;  // the index
  bool is_here;   // the position is within what this dispatch sees to
};

// The high word of a product.
uint HighOf(uint a, uint b) {
  uint a0 = a & 0xFFFFu;
  uint a1 = a >> 16;
  uint b0 = b & 0xFFFFu;
  uint b1 = b >> 16;
  uint middle = a1 * b0 + (a0 * b0 >> 16);
  uint middle2 = a0 * b1 + (middle & 0xFFFFu);
  return a1 * b1 + (middle >> 16) + (middle2 >> 16);
}

// floor(origin + step * scale), within the input.
uint NearestOf(MoveRuleConstants rule, uint step) {
  uint low = step * rule.scale_low;
  uint sum = low + rule.origin_low;
  uint high = HighOf(step, rule.scale_low) + step * rule.scale_high + rule.origin_high;
  return (uint)clamp((int)(high + (sum < low ? 1u : 0u)), 0, (int)rule.size - 1);
}

void Step(inout Place at, uint d, uint step) {
  Dim dim = c.dims[d];
  at.output += step * dim.output_stride;
  at.index += step * dim.index_stride;
  MoveRuleConstants rule = c.rules[d];
  uint position = step;
  [branch] if (rule.rule != MOVE_PLAIN) {
    uint started = rule.start + step;
    if (rule.rule == MOVE_CONSTANT) {
      at.inside = at.inside && started < rule.size;
      position = started;
    } else if (rule.rule == MOVE_EDGE) {
      position = (uint)clamp((int)started, 0, (int)rule.size - 1);
    } else if (rule.rule == MOVE_WRAP) {
      position = started % rule.size;
    } else if (rule.rule == MOVE_MIRROR) {
      uint turn = started / rule.size;
      position = started - turn * rule.size;
      if ((turn & 1) != 0) position = rule.last - position;
    } else if (rule.rule == MOVE_NEAREST) {
      position = NearestOf(rule, started);
    } else if (rule.rule == MOVE_REVERSED) {
      at.along = started;
      position = 0;
    } else if (rule.rule == MOVE_ORDER) {
      at.along = started;
    } else {
      at.diagonal += rule.rule == MOVE_COLUMN ? (int)started : -(int)started;
    }
  }
  at.input += position * dim.input_stride;
}

#if INDEXED
// Element `at` of the index tensor; its high word is the sign if it has none.
uint2 IndexAt(uint at) {
  uint word = at * c.index_words;
  uint4 v = Indices[instance.read1 + word / 4];
  uint low = WordOf(v, word & 3);
  uint sign = c.index_signed != 0 ? (uint)((int)low >> 31) : 0u;
  return uint2(low, c.index_words == 2 ? WordOf(v, (word + 1) & 3) : sign);
}

// Adds what the index tensor says to `offset`.
void FollowIndices(inout Place at, inout uint offset) {
  [loop] for (uint i = 0; i < c.indexed_rank; ++i) {
    MoveIndexConstants dim = c.indexed[i];
    uint2 index = IndexAt(at.index + i * c.index_step);
    uint position = index.x;
    bool is_valid = index.y == 0 && position < dim.size;
    if (c.index_signed != 0 && index.y == 0xFFFFFFFFu) {
      position = index.x + dim.size;
      is_valid = position < dim.size && index.x != 0;
    }
    at.is_valid = at.is_valid && is_valid;
    at.is_here = at.is_here && position - dim.first < dim.count;
    offset += position * dim.stride;
  }
}

void FollowLength(inout Place at) {
  MoveIndexConstants dim = c.indexed[0];
  uint2 index = IndexAt(at.index);
  uint length = index.y != 0 ? dim.size : min(index.x, dim.size);
  uint position = at.along < length ? length - 1 - at.along : at.along;
  at.is_here = position - dim.first < dim.count;
  at.input += position * dim.stride;
}
#endif

// The outermost dimension needs no division.
Place PlaceOf(uint unit) {
  Place at;
  at.input = c.input_base;
  at.output = c.output_base;
  at.index = c.index_base;
  at.along = 0;
  at.diagonal = 0;
  at.inside = true;
  at.is_valid = true;
  at.is_here = true;
  uint rest = unit;
  [loop] for (uint d = c.rank; d > 1; --d) {
    uint size = c.dims[d - 1].size;
    uint next = rest / size;
    Step(at, d - 1, rest - next * size);
    rest = next;
  }
  Step(at, 0, rest);
  return at;
}

#ifdef MARKS_ONLY

[numthreads(THREADS, 1, 1)]
void Mark(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit >= c.groups.unit_count) return;
  Place at = PlaceOf(unit);
  FollowIndices(at, at.output);
  if (!at.is_valid || !at.is_here) return;
  InterlockedMax(Marks[instance.write0 + c.mark_base + at.output], at.along + 1);
}

#elif defined(SCATTERS)

[numthreads(THREADS, 1, 1)]
void Scatter(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit >= c.groups.unit_count) return;
  Place at = PlaceOf(unit);
  FollowIndices(at, at.output);
  if (!at.is_valid || !at.is_here) return;
  if (Marks[instance.write1 + c.mark_base + at.output] != at.along + 1) return;
  Output[instance.write0 + at.output] = ElementAt(at.input);
}

#else

[numthreads(THREADS, 1, 1)]
void Move(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit >= c.groups.unit_count) return;
  Place at = PlaceOf(unit);
#if INDEXED
  [branch] if (c.has_lengths != 0) {
    FollowLength(at);
  } else {
    FollowIndices(at, at.input);
  }
  if (at.is_valid ? !at.is_here : c.writes_invalid == 0) return;
  bool is_constant = !at.is_valid || !at.inside;
#else
  bool is_constant = !at.inside;
#endif
  int begin = (int)c.fill_begin;
  int end = (int)c.fill_end;
  bool is_filled = (end >= begin) != ((at.diagonal >= begin) != (at.diagonal < end));
  BITS bits = Constant();
  [branch] if (!is_constant && !is_filled) bits = ElementAt(at.input);
  Output[instance.write0 + at.output] = bits;
}

#endif
