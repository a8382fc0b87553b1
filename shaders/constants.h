// Shared by C++ and HLSL: what the constants of all kernels have in common. The struct of a kernel
// is in the header of its family (reduction_constants.h and others). It begins with
// GroupConstants `groups` and consists of 32-bit scalars, and of structs of whole rows of four,
// which precede the scalars, so that both languages lay it out alike. Offsets and strides are
// in elements.
#ifndef OPMILL_SHADERS_CONSTANTS_H_
#define OPMILL_SHADERS_CONSTANTS_H_

#ifdef __cplusplus
#include <cstdint>
#define OPMILL_SHARED_BEGIN \
  namespace opmill {        \
  using uint = uint32_t;
#define OPMILL_SHARED_END }
#else
#define OPMILL_SHARED_BEGIN
#define OPMILL_SHARED_END
#endif

#define OPMILL_MAX_DIMS 8

// Runs of one operator that a dispatch may serve at once, each with its own layer of groups.
#define OPMILL_MAX_INSTANCES 64

OPMILL_SHARED_BEGIN

// What a group and its lanes take. If a dispatch is cut, each part has its own group_columns and
// first_group, for every kernel.
struct GroupConstants {
  uint group_columns;  // groups.x: flat groups are first_group + group.y * group_columns + group.x
  uint first_group;    // not 0 in the later parts of a dispatch that was cut
  uint unit_count;     // units dealt to lanes, as the kernel defines them; 0 if groups take all
  uint zero;           // always 0, opaque to the optimizer
};

// Where the buffers of an instance start in the views of t0 to t7, u0 and u1, in elements of the
// view.
struct Instance {
  uint read0;
  uint read1;
  uint write0;
  uint write1;
  uint read2;
  uint read3;
  uint read4;
  uint read5;
  uint read6;
  uint read7;
  uint unused0;  // whole rows
  uint unused1;
};

// One dimension of an iteration space: how far a step along it moves in each tensor. Strides wrap
// modulo 2^32, so that they may be negative.
struct Dim {
  uint size;
  uint input_stride;
  uint output_stride;
  uint index_stride;  // in the tensor of indices: what top_k finds, or what moves follow
};

OPMILL_SHARED_END

#endif  // OPMILL_SHADERS_CONSTANTS_H_
