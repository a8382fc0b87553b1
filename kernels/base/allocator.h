// How a process that speaks gRPC is set up: its allocator, and abseil's locks.
#ifndef OPMILL_KERNELS_BASE_ALLOCATOR_H_
#define OPMILL_KERNELS_BASE_ALLOCATOR_H_

#include <cstdint>

namespace opmill {

// For the first line of main(). glibc returns the top of the heap to the system whenever a large
// message is freed, and faults it in again for the next one; this keeps it. Of no effect elsewhere.
// One stream of 1 MiB chunks moves 1.6-1.85 GB/s with it and 1.0-1.1 without (2 cores, loopback).
void TuneAllocatorForLargeMessages();

// The same for a server, which also makes many small calls: gRPC's locks are abseil's, and Debian's
// abseil looks for deadlocks at each, several percent of such a call. No longer after this.
void TuneForServing();

// What malloc has given out, walking its free lists. 0 elsewhere than with glibc.
uint64_t AllocatedBytes();

// Gives what is free back to the system, which the functions above keep it from, in all of malloc's
// arenas: takes milliseconds and, for that time, two threads a processor. Of no effect elsewhere
// than with glibc.
void ReturnFreeMemory();

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_ALLOCATOR_H_
