#include <windows.h>

#include <algorithm>

#include "server/host/host_memory.h"

namespace opmill {

uint64_t HostMemoryBytes() {
  MEMORYSTATUSEX status = {};
  status.dwLength = sizeof(status);
  uint64_t bytes = GlobalMemoryStatusEx(&status) ? status.ullTotalPhys : uint64_t{8} << 30;
  // Containers are jobs.
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION job = {};
  if (!QueryInformationJobObject(nullptr, JobObjectExtendedLimitInformation, &job, sizeof(job),
                                 nullptr)) {
    return bytes;
  }
  const DWORD limits = job.BasicLimitInformation.LimitFlags;
  if ((limits & JOB_OBJECT_LIMIT_PROCESS_MEMORY) != 0) {
    bytes = std::min<uint64_t>(bytes, job.ProcessMemoryLimit);
  }
  if ((limits & JOB_OBJECT_LIMIT_JOB_MEMORY) != 0) {
    bytes = std::min<uint64_t>(bytes, job.JobMemoryLimit);
  }
  return bytes;
}

}  // namespace opmill
