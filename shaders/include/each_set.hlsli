// What is said once of each set of a vector's elements. The including shader says how many SETS there are.
// Sets are members of a struct, and not an array: Microsoft's compiler makes memory of an array that
// changes in a loop, and takes ten times as long for it; vkd3d's loses what functions change of one.

#if SETS == 1
#define EACH_SET(DO) DO(0)
#elif SETS == 2
#define EACH_SET(DO) DO(0) DO(1)
#elif SETS == 4
#define EACH_SET(DO) DO(0) DO(1) DO(2) DO(3)
#endif
