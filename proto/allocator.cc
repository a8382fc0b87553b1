#include "proto/allocator.h"

#include <cstdlib>  // defines __GLIBC__ where it is

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace opmill {

void TuneAllocatorForLargeMessages() {
#ifdef __GLIBC__
  constexpr int kTrimThresholdBytes = 2'147'483'647;  // mallopt takes no more
  constexpr int kTopPadBytes = 64 << 20;
  mallopt(M_TRIM_THRESHOLD, kTrimThresholdBytes);
  mallopt(M_TOP_PAD, kTopPadBytes);
#endif
}

}  // namespace opmill
