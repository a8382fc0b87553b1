// Of reduction.hlsli: what a lane's walk takes at a step, an item, and how many there are.
#ifndef OPMILL_ITEMS_HLSLI_
#define OPMILL_ITEMS_HLSLI_

#define LOAD_ALIGNED 0  // an item is a vector, all of it wanted
#define LOAD_SHIFTED 1  // rows: the run starts and ends inside vectors; columns: likewise each item
#define LOAD_SCALAR 2   // an item is one element
#define LOAD_RECORD 3   // an item is a record of an earlier pass

// Elements of an item.
#if LOAD == LOAD_SCALAR || LOAD == LOAD_RECORD
#define SLOTS 1
#else
#define SLOTS VECTOR_ELEMENTS
#endif

// Items of every unit, where they are few and a lane walks all of one: without a loop, which costs a
// software device as much as some loads. 0: any number.
#ifndef ITEMS
#define ITEMS 0
#endif

#endif  // OPMILL_ITEMS_HLSLI_
