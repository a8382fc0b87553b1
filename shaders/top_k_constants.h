// Shared by C++ and HLSL: top_k. A sequence is the elements of which the k best are selected.
#ifndef OPMILL_SHADERS_TOP_K_CONSTANTS_H_
#define OPMILL_SHADERS_TOP_K_CONSTANTS_H_

#include "constants.h"

// SOURCE: what a kernel reads.
#define SOURCE_ELEMENTS 0  // of the input
#define SOURCE_RECORDS 1   // candidates that an earlier pass has left, in the order of positions

// RESULT: what a kernel writes.
#define RESULT_RECORDS 0       // candidates, in the order of positions
#define RESULT_INDICES 1       // the outputs
#define RESULT_WIDE_INDICES 2  // the outputs, with indices of 64 bits

// Items that a group sorts in groupshared memory: of up to 32 bits, and of 64.
#define TOP_K_NARROW_CAPACITY 2048
#define TOP_K_WIDE_CAPACITY 1024

#define TOP_K_MOST_WALKED 16  // results of WalkChunks, which a lane keeps in registers
#define TOP_K_FEW 256         // candidates that SelectBest compares with each other
#define TOP_K_MOST_ROWS 256   // sequences that a group of SortSequences sorts
#define TOP_K_LANE_VECTORS 4  // that a lane of SelectBest keeps in registers
#define TOP_K_CHUNK_BITS 15   // log2 of the most items of a chunk of SelectBest
#define TOP_K_DIGITS 256      // of the radix sort
#define TOP_K_TILE_BITS 11    // GatherRows: log2 of the elements of a tile
#define TOP_K_TILE (1 << TOP_K_TILE_BITS)
#define TOP_K_TILE_ROWS 32  // the most sequences of a tile

OPMILL_SHARED_BEGIN

// Where results go; strides are from a rank to the next.
struct TopKOutputs {
  uint values_base;
  uint indices_base;
  uint value_stride;
  uint index_stride;
};

// The ranks that a dispatch writes, of those from 0 to k: of the results, or of a chunk's records.
struct TopKRanks {
  uint first;
  uint count;
  uint k;
  uint unused;
};

// What a dispatch reads of each sequence: all of it, or the part in its view.
struct TopKItems {
  uint base;            // offset of the first item, in elements or records of the view
  uint stride;          // to the next element; SOURCE_RECORDS: to the next sequence
  uint length;          // items
  uint first_position;  // SOURCE_ELEMENTS: of the first item, in its sequence
};

// SortSequences. A group has 2^row_bits sequences, each in 2^item_bits slots. Units are sequences.
struct TopKSortConstants {
  struct GroupConstants groups;
  struct Dim kept[OPMILL_MAX_DIMS];  // outermost first
  struct TopKOutputs outputs;
  struct TopKRanks ranks;
  uint kept_rank;  // dimensions in use in kept[]
  uint input_base;
  uint element_stride;
  uint length;  // elements of a sequence
  uint row_bits;
  uint item_bits;
  uint goes_across;  // 1 if adjacent lanes take adjacent sequences
};

// GatherRows. A group has a tile: some elements of each of 2^row_bits sequences. Units are tiles.
struct TopKGatherConstants {
  struct GroupConstants groups;
  struct Dim kept[OPMILL_MAX_DIMS];  // outermost first
  uint kept_rank;                    // dimensions in use in kept[]
  uint sequences;
  uint input_base;
  uint element_stride;
  uint length;  // elements of the part of a sequence
  uint row_bits;
  uint row_tiles;   // tiles along a sequence
  uint row_base;    // offset of the first written element
  uint row_stride;  // from a written sequence to the next
};

// SelectBest, WalkChunks, CountDigits, ScatterItems. A group, or a lane, has a chunk of a sequence.
// Units are chunks.
struct TopKChunkConstants {
  struct GroupConstants groups;
  struct Dim kept[OPMILL_MAX_DIMS];  // outermost first
  struct TopKItems items;
  struct TopKOutputs outputs;
  struct TopKRanks ranks;
  uint kept_rank;      // dimensions in use in kept[]
  uint chunks;         // of a sequence, or of the part that is read
  uint chunk_length;   // items of a chunk; the last one may have fewer
  uint first_record;   // RESULT_RECORDS: of chunk 0 of sequence 0, in the view
  uint record_stride;  // RESULT_RECORDS: from a sequence to the next
  uint most;           // SelectBest: candidates that may be collected; a power of two
  uint leaders;        // SelectBest: one for each lane, or for each of its vectors; 0: no floor
  uint first_chunk;    // radix sort: number of the first chunk in the sequence
  uint all_chunks;     // radix sort: of the sequence
  uint shift;          // radix sort: of the digit in the key
};

// ScanCounts. A group has the counts of a digit of a sequence. Units are such digits.
struct TopKScanConstants {
  struct GroupConstants groups;
  uint all_chunks;  // of a sequence
};

OPMILL_SHARED_END

#endif  // OPMILL_SHADERS_TOP_K_CONSTANTS_H_
