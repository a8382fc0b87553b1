// Of reduction.hlsli: how many elements an item has.
#include "reduction_constants.h"

#if LOAD == LOAD_SCALAR || LOAD == LOAD_RECORD
#define SLOTS 1
#else
#define SLOTS VECTOR_ELEMENTS
#endif
