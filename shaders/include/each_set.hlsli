// Repeats code for each set of a vector's elements. The including shader defines
// SETS, their number.
// Sets are members of a struct, not an array. Microsoft's compiler puts an array that changes in a
// loop into memory, and takes ten times as long; vkd3d's loses changes that functions make to one.

#if SETS == 1
#define EACH_SET(DO) DO(0)
#elif SETS == 2
#define EACH_SET(DO) DO(0) DO(1)
#elif SETS == 4
#define EACH_SET(DO) DO(0) DO(1) DO(2) DO(3)
#endif
