// The limit on the files that this process may have open.
#ifndef OPMILL_SERVER_HOST_OPEN_FILES_H_
#define OPMILL_SERVER_HOST_OPEN_FILES_H_

#include <cstdint>

namespace opmill {

// Raises the limit to `wanted` files if it is lower and the system allows that. Returns the limit;
// UINT64_MAX if there is none.
uint64_t AllowOpenFiles(uint64_t wanted);

}  // namespace opmill

#endif  // OPMILL_SERVER_HOST_OPEN_FILES_H_
