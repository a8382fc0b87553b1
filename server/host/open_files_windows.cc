#include "server/host/open_files.h"

namespace opmill {

uint64_t AllowOpenFiles(uint64_t /*wanted*/) { return UINT64_MAX; }

}  // namespace opmill
