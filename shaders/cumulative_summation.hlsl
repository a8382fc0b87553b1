// The sums of all elements up to each one along a dimension. Integers wrap, so that DATA_TYPE is an
// unsigned type for signed ones too.
//   SumBlocks      a group sums a block of a sequence and writes a record
//   ScanBlocks     a group adds the records before its block, then walks the block in tiles
//   ScanSequences  a lane walks a sequence
//   EXCLUSIVE      1: an element is no part of its own sum
//   CARRIES        1: there are records of earlier blocks
#include "cumulative_summation_constants.h"
#define KERNEL_CONSTANTS CumulativeSummationConstants
#include "include/kept_dims.hlsli"
#include "include/elements.hlsli"
#include "include/half.hlsli"

Buffer<uint4> Input : register(t0);
Buffer<uint4> Records : register(t1);

#if IS_WIDE
#define SUM uint2
SUM Plus(SUM a, SUM b) {
  uint low = a.x + b.x;
  return uint2(low, a.y + b.y + (low < a.x ? 1u : 0u));
}
#define SumOfBits(bits) (bits)
#define BitsOfSum(sum) (sum)
#define RecordOfSum(sum) uint4(sum, 0, 0)
#define SumOfRecord(record) (record).xy
#elif IS_FLOAT
#define SUM float
SUM Plus(SUM a, SUM b) { return a + b; }
#if DATA_TYPE == TYPE_FLOAT16
#define SumOfBits(bits) FloatOfHalf(bits)
#define BitsOfSum(sum) HalfBits(sum)
#else
#define SumOfBits(bits) asfloat(bits)
#define BitsOfSum(sum) asuint(sum)
#endif
#define RecordOfSum(sum) uint4(asuint(sum), 0, 0, 0)
#define SumOfRecord(record) asfloat((record).x)
#else
#define SUM uint
SUM Plus(SUM a, SUM b) { return a + b; }
#define SumOfBits(bits) (bits)
#define BitsOfSum(sum) (sum)
#define RecordOfSum(sum) uint4(sum, 0, 0, 0)
#define SumOfRecord(record) (record).x
#endif

// Element `position` of the sequence that starts there. Strides may be negative: offsets wrap.
SUM ElementAt(uint start, uint position) {
  uint at = start + position * c.input_stride;
  return SumOfBits(ElementOf(Input[instance.read0 + at / VECTOR_ELEMENTS], at % VECTOR_ELEMENTS));
}

#ifndef SUMS_BLOCKS
RWBuffer<BITS> Output : register(u0);

// Stores the sum at an element and returns the sum after it.
SUM Step(uint start, uint position, SUM sum, SUM element) {
  SUM after = Plus(sum, element);
  Output[instance.write0 + start + position * c.output_stride] =
      BitsOfSum(EXCLUSIVE ? sum : after);
  return after;
}
#endif

#include "include/sum_lanes.hlsli"

// The part of a sequence that a group has.
struct Block {
  uint sequence;
  uint number;
  uint begin;
  uint end;
};

Block BlockOf(uint flat) {
  Block block;
  block.sequence = flat / c.blocks;
  block.number = flat % c.blocks;
  block.begin = block.number * c.block_length;
  block.end = min(block.begin + c.block_length, c.length);
  return block;
}

#ifdef SUMS_BLOCKS

RWBuffer<uint4> BlockSums : register(u0);

[numthreads(THREADS, 1, 1)]
void SumBlocks(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  Block block = BlockOf(EnterGroup(group));
  if (block.sequence >= c.groups.unit_count) return;
  uint start = c.input_base + KeptOffsets(block.sequence).input;
  SUM own = (SUM)0;
  [loop] for (uint i = block.begin + lane; i < block.end; i += THREADS) {
    own = Plus(own, ElementAt(start, i));
  }
  SumBefore(lane, own);
  SUM total = SumOfAll();
  uint record = c.first_record + block.sequence * c.record_stride + block.number;
  if (lane == 0) BlockSums[instance.write0 + record] = RecordOfSum(total);
}

#else

[numthreads(THREADS, 1, 1)]
void ScanBlocks(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  Block block = BlockOf(EnterGroup(group));
  if (block.sequence >= c.groups.unit_count) return;
  Offsets at = KeptOffsets(block.sequence);
  uint input = c.input_base + at.input;
  uint output = c.output_base + at.output;
  SUM sum = (SUM)0;
#if CARRIES
  uint first = instance.read1 + block.sequence * c.record_stride;
  uint earlier = c.first_record + block.number;
  SUM own = (SUM)0;
  [loop] for (uint r = lane; r < earlier; r += THREADS) {
    own = Plus(own, SumOfRecord(Records[first + r]));
  }
  SumBefore(lane, own);
  sum = SumOfAll();
#endif
  [loop] for (uint tile = block.begin; tile < block.end; tile += THREADS * LANE_ITEMS) {
    uint begin = tile + lane * LANE_ITEMS;
    SUM elements[LANE_ITEMS];
    SUM of_lane = (SUM)0;
    [unroll] for (uint i = 0; i < LANE_ITEMS; ++i) {
      elements[i] = (SUM)0;
      if (begin + i < block.end) elements[i] = ElementAt(input, begin + i);
      of_lane = Plus(of_lane, elements[i]);
    }
    SUM running = Plus(sum, SumBefore(lane, of_lane));
    [unroll] for (uint j = 0; j < LANE_ITEMS; ++j) {
      if (begin + j < block.end) running = Step(output, begin + j, running, elements[j]);
    }
    sum = Plus(sum, SumOfAll());
  }
}

[numthreads(THREADS, 1, 1)]
void ScanSequences(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint sequence = EnterGroup(group) * THREADS + lane;
  if (sequence >= c.groups.unit_count) return;
  Offsets at = KeptOffsets(sequence);
  uint input = c.input_base + at.input;
  uint output = c.output_base + at.output;
  SUM sum = (SUM)0;
  [loop] for (uint i = 0; i < c.length; ++i) {
    sum = Step(output, i, sum, ElementAt(input, i));
  }
}

#endif
