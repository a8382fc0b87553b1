#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/host/host_memory.h"

namespace opmill {
namespace {

constexpr char kGroups[] = "/sys/fs/cgroup";

// An unset limit reads as "max", or as a number larger than any memory.
uint64_t Smaller(uint64_t bytes, const std::string& file) {
  uint64_t limit = 0;
  return std::ifstream(file) >> limit && limit > 0 ? std::min(bytes, limit) : bytes;
}

// The smallest limit of the group and its ancestors, all of which are visible outside of a
// container.
uint64_t SmallestOnTheWayUp(uint64_t bytes, const std::string& root, std::string group,
                            const std::string& name) {
  for (;;) {
    bytes = Smaller(bytes, absl::StrCat(root, group, "/", name));
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) return bytes;
    group.resize(slash);
  }
}

}  // namespace

uint64_t HostMemoryBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGE_SIZE);
  uint64_t bytes =
      pages > 0 && page_bytes > 0 ? static_cast<uint64_t>(pages) * page_bytes : uint64_t{8} << 30;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "0::/a/b" of version 2, "4:memory:/a/b" of version 1.
    const size_t path = line.find(":/");
    if (path == std::string::npos) continue;
    const std::string group = line.substr(path + 1);
    if (absl::StartsWith(line, "0::")) {
      bytes = SmallestOnTheWayUp(bytes, kGroups, group, "memory.max");
    } else if (absl::StrContains(line, ":memory:")) {
      bytes = SmallestOnTheWayUp(bytes, absl::StrCat(kGroups, "/memory"), group,
                                 "memory.limit_in_bytes");
    }
  }
  return bytes;
}

}  // namespace opmill
