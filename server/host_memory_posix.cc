#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "server/host_memory.h"

namespace opmill {

uint64_t HostMemoryBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGE_SIZE);
  uint64_t bytes =
      pages > 0 && page_bytes > 0 ? static_cast<uint64_t>(pages) * page_bytes : uint64_t{8} << 30;
  // A limit that is not set reads "max", and no number.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    uint64_t limit = 0;
    if (std::ifstream(path) >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

}  // namespace opmill
