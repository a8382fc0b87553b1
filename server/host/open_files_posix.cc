#include <sys/resource.h>

#include <algorithm>

#include "server/host/open_files.h"

namespace opmill {

uint64_t AllowOpenFiles(uint64_t wanted) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return UINT64_MAX;
  if (limit.rlim_cur < wanted) {
    const rlimit raised = {.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max),
                           .rlim_max = limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return limit.rlim_cur;
}

}  // namespace opmill
