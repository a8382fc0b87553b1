// Shared by C++ and HLSL: cumulative_summation.
#ifndef OPMILL_SHADERS_CUMULATIVE_SUMMATION_CONSTANTS_H_
#define OPMILL_SHADERS_CUMULATIVE_SUMMATION_CONSTANTS_H_

#include "constants.h"

OPMILL_SHARED_BEGIN

// Units are sequences.
struct CumulativeSummationConstants {
  struct GroupConstants groups;
  struct Dim kept[OPMILL_MAX_DIMS];  // from sequence to sequence, outermost first
  uint kept_rank;                    // dimensions in use in kept[]
  uint input_base;                   // offset of the first element that is summed
  uint output_base;
  uint input_stride;   // from an element of a sequence to the next; negative ones wrap
  uint output_stride;  // the same
  uint length;         // elements of a sequence
  uint block_length;   // of those, what a group walks
  uint blocks;         // groups that share a sequence
  uint first_record;   // of a sequence: the record of this dispatch's first block
  uint record_stride;  // records from a sequence to the next
};

OPMILL_SHARED_END

#endif  // OPMILL_SHADERS_CUMULATIVE_SUMMATION_CONSTANTS_H_
