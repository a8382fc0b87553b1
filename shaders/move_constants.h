// Shared by C++ and HLSL: operators that move elements.
#ifndef OPMILL_SHADERS_MOVE_CONSTANTS_H_
#define OPMILL_SHADERS_MOVE_CONSTANTS_H_

#include "constants.h"

// How a step along a dimension becomes a position in the input.
#define MOVE_PLAIN 0     // the step itself
#define MOVE_CONSTANT 1  // positions outside of the input hold the constant
#define MOVE_EDGE 2      // the nearest position inside
#define MOVE_MIRROR 3    // positions run forward, then backward, and again
#define MOVE_WRAP 4      // positions start over
#define MOVE_REVERSED 5  // backward within the length that the index tensor holds
#define MOVE_ROW 6       // plain; counts diagonals down
#define MOVE_COLUMN 7    // plain; counts diagonals up
#define MOVE_ORDER 8     // plain; of the writes to one place, the last step's remains
#define MOVE_NEAREST 9   // a scaled position, rounded

OPMILL_SHARED_BEGIN

struct MoveRuleConstants {
  uint rule;   // MOVE_...
  uint start;  // added to the step
  uint size;   // positions of the input; of MOVE_MIRROR, until positions turn
  uint last;   // of MOVE_MIRROR: the sum of the positions of a step forward and its mirror image
  // Of MOVE_NEAREST, as fixed-point numbers with 32 binary digits: the position of step 0, and what
  // each step adds.
  uint origin_low;
  uint origin_high;
  uint scale_low;
  uint scale_high;
};

// A dimension in which the index tensor gives the position.
struct MoveIndexConstants {
  uint size;
  uint first;  // the dispatch sees to positions from here on
  uint count;
  uint stride;
};

// Units are elements. Input strides are from position to position.
struct MoveConstants {
  struct GroupConstants groups;
  struct Dim dims[OPMILL_MAX_DIMS];  // outermost first
  struct MoveRuleConstants rules[OPMILL_MAX_DIMS];
  struct MoveIndexConstants indexed[OPMILL_MAX_DIMS];
  uint rank;          // dimensions in use in dims[] and rules[]
  uint indexed_rank;  // in indexed[]
  uint has_lengths;   // 1: the index tensor has lengths for MOVE_REVERSED along indexed[0]
  uint input_base;    // offset of position 0, in elements of the view; wraps
  uint output_base;
  uint index_base;
  uint mark_base;       // of the output's element 0 in the marks; wraps
  uint index_step;      // from a coordinate of an index to the next
  uint index_words;     // 1 or 2: of an element of the index tensor
  uint index_signed;    // 1: negative positions count from the end
  uint writes_invalid;  // 1: writes zero where the index is out of range
  uint fill_begin;      // diagonals that hold the constant, as in DML_DIAGONAL_MATRIX1
  uint fill_end;
  uint constant0;  // the bits of an element
  uint constant1;
  uint constant2;
  uint constant3;
};

OPMILL_SHARED_END

#endif  // OPMILL_SHADERS_MOVE_CONSTANTS_H_
