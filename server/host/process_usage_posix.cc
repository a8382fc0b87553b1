#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "server/host/process_usage.h"

namespace opmill {

uint64_t ReadResidentBytes() {
  uint64_t pages = 0;
  const long page_bytes = sysconf(_SC_PAGE_SIZE);
  if (!(std::ifstream("/proc/self/statm") >> pages >> pages) || page_bytes <= 0) return 0;
  return pages * static_cast<uint64_t>(page_bytes);
}

ProcessUsage ReadProcessUsage() {
  ProcessUsage usage;
  usage.resident_bytes = ReadResidentBytes();
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error)) {
    ++usage.open_handles;
  }
  rusage times = {};
  if (getrusage(RUSAGE_SELF, &times) == 0) {
    usage.processor_time =
        absl::DurationFromTimeval(times.ru_utime) + absl::DurationFromTimeval(times.ru_stime);
  }
  return usage;
}

}  // namespace opmill
