// Shared by C++ and HLSL: gemm and convolution.
#ifndef OPMILL_SHADERS_MATRIX_CONSTANTS_H_
#define OPMILL_SHADERS_MATRIX_CONSTANTS_H_

#include "constants.h"

// The sums of a block of K that a group loads at once.
#define MATRIX_BLOCK_DEPTH 8

OPMILL_SHARED_BEGIN

// A dimension of equal products.
struct MatrixBatch {
  uint size;
  uint a_stride;
  uint b_stride;
  uint addend_stride;
  uint output_stride;
  uint unused0;  // whole rows
  uint unused1;
  uint unused2;
};

// A spatial dimension of a convolution. Output o and tap t meet input (o * step + t * tap_step -
// padding) / spread, if that is an integer and not outside. tap_step may be negative, and wraps.
struct MatrixAxis {
  uint outputs;
  uint inputs;
  uint taps;
  uint step;
  uint tap_step;
  uint padding;  // may be negative, and wraps
  uint spread;
  uint input_stride;   // in elements
  uint filter_stride;  // may be negative, and wraps
  uint output_stride;
  uint depth_digit;  // depth_step as digits of a row of B: of this dimension
  uint unused0;
};

// output[m, n] = alpha * sum of A[m, k] * B[k, n] + beta * addend[m, n]. Strides and bases are in
// elements. If K is divided into slots, the first dispatch writes a sum for each slot, and Join
// adds these.
struct MatrixConstants {
  struct GroupConstants groups;
  struct MatrixBatch batches[2];  // the outer one first
  struct MatrixAxis axes[3];      // of a convolution: depth, height, width
  uint rows;
  uint columns;
  uint depth;
  uint row_tiles;
  uint column_tiles;
  uint a_base;
  uint a_row_stride;
  uint a_depth_stride;  // of a convolution: from channel to channel
  uint b_base;
  uint b_column_stride;  // not of a convolution
  uint b_depth_stride;   // of a convolution: from channel to channel
  uint addend_base;
  uint addend_row_stride;
  uint addend_column_stride;
  uint has_addend;
  uint output_base;
  uint output_row_stride;
  uint output_column_stride;  // not of a convolution
  uint depth_step;            // from a row of B that a lane reads to the next
  uint depth_channels;        // depth_step as digits of a row of B: of channels
  uint a_runs_along_rows;     // adjacent lanes load adjacent rows, not adjacent columns
  uint b_runs_along_columns;
  uint alpha;  // the bits of FLOAT32
  uint beta;
  uint slots;
  uint slot_depth;          // of a slot of Multiply; SumEach sees to every slots-th row of B
  uint slot_stride;         // from the sums of a slot to those of the next
  uint slots_are_adjacent;  // adjacent lanes of SumEach have adjacent slots, not adjacent results
};

OPMILL_SHARED_END

#endif  // OPMILL_SHADERS_MATRIX_CONSTANTS_H_
