// How far the outputs of an execution have been sent.
#ifndef OPMILL_SERVER_API_RESULT_POSITION_H_
#define OPMILL_SERVER_API_RESULT_POSITION_H_

#include <cstddef>
#include <cstdint>

namespace opmill {

struct ResultPosition {
  bool started = false;  // the first message has been made
  size_t output = 0;     // the next byte: of this output,
  uint64_t offset = 0;   // at this offset
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_RESULT_POSITION_H_
