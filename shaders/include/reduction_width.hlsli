// Part of reduction.hlsli: the elements of an item (SLOTS), of which WIDTH are folded side by side.
#include "reduction_constants.h"

#if LOAD == LOAD_SCALAR || LOAD == LOAD_RECORD
#define WIDTH 1
#define SLOTS 1
#elif DATA_TYPE >= 10
#define WIDTH 1
#define SLOTS 2
#else
#define WIDTH 4
#define SLOTS VECTOR_ELEMENTS
#endif
#define SETS (SLOTS / WIDTH)
#define IS_ROW (LOAD == LOAD_ROW_ALIGNED || LOAD == LOAD_ROW_SHIFTED)
#define IS_COLUMN (LOAD == LOAD_COLUMN_ALIGNED || LOAD == LOAD_COLUMN_SHIFTED)
