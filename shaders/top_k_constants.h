// Shared by C++ and HLSL: top_k. A sequence is the elements of which the k best are selected.
#ifndef OPMILL_SHADERS_TOP_K_CONSTANTS_H_
#define OPMILL_SHADERS_TOP_K_CONSTANTS_H_

#include "constants.h"

// LAYOUT: how sequences lie in memory.
#define LAYOUT_ROWS 0     // the elements of a sequence are neighbours
#define LAYOUT_COLUMNS 1  // sequences are neighbours, and every row of them starts a vector
#define LAYOUT_STRIDED 2  // anything else

// SOURCE: what KeepBest walks.
#define SOURCE_ELEMENTS 0
#define SOURCE_RECORDS 1
#define SOURCE_KEYS 2    // of blocks
#define SOURCE_BLOCKS 3  // the elements of the blocks that a list names

// Words of the header that a selection keeps for each sequence.
#define TOP_K_HEADER_WORDS 8

// Records of four candidates in quads (include/top_k_quads.hlsli).
#define TOP_K_QUAD_RECORDS(is_wide) ((is_wide) ? 3u : 2u)

// Keys of blocks that a kernel reads at a time; of 64-bit elements half as many.
#define TOP_K_KEY_STEP 4

// Elements that a lane of CollectAbove tests at a time: of rows a vector holds a bit for each.
#define TOP_K_WINDOW(is_rows, is_wide) (!(is_rows) ? 32u : (is_wide) ? 64u : 128u)

#define TOP_K_RANKED_SLOTS 16   // of a sequence that a lane of RankElements ranks at a time
#define TOP_K_MERGE_CHUNK 32    // records that a lane of MergeRuns merges in one go
#define TOP_K_MOST_KEPT 32      // the most candidates that a lane of KeepBest keeps
#define TOP_K_MOST_PLACES 4096  // that SpreadCandidates spreads a sequence over
#define TOP_K_TILE_SETS 64      // of four words, that a lane of BestOfBlocks keeps of its vectors

OPMILL_SHARED_BEGIN

// The part of each sequence that a dispatch reads.
struct TopKPart {
  uint input_base;      // offset of the first element in the view that is read
  uint element_stride;  // from an element of a sequence to the next
  uint first_position;  // of the part in its sequence
  uint length;          // elements
};

// Where results go; strides are from a rank to the next.
struct TopKOutputs {
  uint values_base;
  uint indices_base;
  uint value_stride;
  uint index_stride;
};

// Where the best keys of blocks lie, in keys.
struct TopKKeys {
  uint sequence_stride;  // from a sequence to the next; columns: from a row of sequences
  uint item_stride;      // from a block to the next
  uint columns;          // columns: sequences in a row
  uint length;           // blocks of a sequence
};

// BestOfBlocks. Units are teams of lanes (rows), lanes of a row and block (columns), or blocks.
struct TopKBlocksConstants {
  struct GroupConstants groups;
  struct Dim kept[OPMILL_MAX_DIMS];  // outermost first
  struct TopKPart part;
  struct TopKKeys keys;
  uint kept_rank;  // dimensions in use in kept[]
  uint sequences;
  uint block_length;    // elements of a block
  uint block_count;     // blocks of the part
  uint first_block;     // number of the first of them
  uint sequence_teams;  // rows: teams that share a sequence
  uint team_turns;      // rows: how often a team reads a block for each of its lanes
  uint row_lanes;       // columns: lanes that share a block of a row of sequences
  uint row_vectors;     // columns: vectors of a row of sequences
  uint tile_vectors;    // columns: vectors that a lane takes, THREADS apart
  uint tile_rows;       // columns in tiles: rows walked of one vector before the next
};

// KeepBest. Units are runs of candidates of a sequence.
struct TopKKeepConstants {
  struct GroupConstants groups;
  struct Dim kept[OPMILL_MAX_DIMS];  // outermost first
  struct TopKPart part;
  struct TopKOutputs outputs;
  struct TopKKeys keys;
  uint kept_rank;  // dimensions in use in kept[]
  uint sequences;
  uint list_length;   // candidates of a sequence
  uint run_length;    // of those, what a lane walks
  uint kept_count;    // candidates that are kept of a run
  uint first_record;  // of what is kept of the first sequence
  uint record_stride;

  uint list_stride;       // records that are read from a sequence to the next
  uint list_item_stride;  // SOURCE_RECORDS: from a candidate to the next
  uint counted;           // SOURCE_RECORDS: 1 where headers tell how many candidates there are
  uint candidate_stride;  // counted: records of candidates from a sequence to the next

  uint winners;       // SOURCE_BLOCKS: blocks of a sequence that the list names
  uint block_length;  // elements of a block
  uint block_count;   // blocks of the part
  uint first_block;   // number of the first of them
};

// MergeRuns. Units are chunks of merged runs.
struct TopKMergeConstants {
  struct GroupConstants groups;
  uint list_length;    // candidates of a sequence that all runs have kept the best of
  uint run_elements;   // of those, how many a run stands for
  uint run_length;     // records of a run; the last one may have fewer
  uint merged_count;   // merged runs of a sequence
  uint merged_length;  // the most records of a merged run
  uint list_stride;    // records that are read from a sequence to the next
  uint record_stride;  // written records from a sequence to the next
  uint counted;        // 1 where headers tell how many candidates there are
};

// WriteResults. Units are ranks of sequences.
struct TopKWriteConstants {
  struct GroupConstants groups;
  struct Dim kept[OPMILL_MAX_DIMS];  // outermost first
  struct TopKPart part;
  struct TopKOutputs outputs;
  uint kept_rank;    // dimensions in use in kept[]
  uint first_rank;   // that this dispatch writes
  uint rank_count;   // ranks that it writes of each sequence
  uint list_stride;  // records from a sequence to the next
};

// FindCut, TakeBest. A lane or a group has a sequence.
struct TopKSelectConstants {
  struct GroupConstants groups;
  struct TopKKeys keys;
  uint sequences;
  uint k;                 // the fewest blocks or candidates that a cut leaves
  uint most;              // and the most
  uint candidate_stride;  // TakeBest: records of candidates from a sequence to the next
  uint taken_stride;      // TakeBest: records of what is taken from a sequence to the next
};

// CollectAbove. Units are lanes' shares of sequences, or sets of four columns.
struct TopKCollectConstants {
  struct GroupConstants groups;
  struct Dim kept[OPMILL_MAX_DIMS];  // outermost first
  struct TopKPart part;
  struct TopKKeys keys;
  uint kept_rank;  // dimensions in use in kept[]
  uint sequences;
  uint block_length;       // elements of a block
  uint block_count;        // blocks of the part
  uint first_block;        // number of the first of them
  uint skips_blocks;       // 1 if blocks are no shorter than windows
  uint block_window_bits;  // then: log2 of the windows of a block
  uint sequence_lanes;     // lanes that share a sequence
  uint lane_windows;       // windows that a lane takes
  uint lane_stride;        // windows from a lane's first to the next lane's
  uint window_stride;      // windows from one that a lane takes to its next
  uint candidate_stride;   // records of candidates from a sequence to the next
};

// RankElements. Units are blocks of slots of a sequence.
struct TopKRankConstants {
  struct GroupConstants groups;
  struct Dim kept[OPMILL_MAX_DIMS];  // outermost first
  struct TopKPart part;
  struct TopKOutputs outputs;
  uint kept_rank;  // dimensions in use in kept[]
  uint sequences;
  uint k;
  uint side_by_side;      // sequences whose blocks of slots alternate
  uint slot_blocks;       // blocks of slots of a sequence
  uint candidate_stride;  // IS_SELECTED: records of candidates from a sequence to the next
  uint taken_stride;      // IS_SELECTED: records of what is taken from a sequence to the next
};

// SpreadCandidates, a group for each sequence, and RankCandidates, whose units are candidates.
struct TopKSpreadConstants {
  struct GroupConstants groups;
  uint sequences;
  uint length;            // elements of a sequence
  uint k;                 // ranks of a sequence, which lie side by side
  uint place_bits;        // log2 of the places
  uint candidate_stride;  // records of candidates from a sequence to the next
  uint taken_stride;      // records of what is taken from a sequence to the next
  uint spread_stride;     // records of what is spread from a sequence to the next
};

OPMILL_SHARED_END

#endif  // OPMILL_SHADERS_TOP_K_CONSTANTS_H_
