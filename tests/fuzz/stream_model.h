// What a caller of ExecuteStream may expect, kept apart from the server's own books.
#ifndef OPMILL_TESTS_FUZZ_STREAM_MODEL_H_
#define OPMILL_TESTS_FUZZ_STREAM_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/descriptor/operator_desc.h"
#include "opmill/v1/service.pb.h"

namespace opmill {

class StreamModel {
 public:
  // In the order of the call. False for a message that the test should not send: its work would
  // take a reference device too long.
  bool Sends(const v1::ExecuteStreamRequest& message);
  // What was said of that execution since `before` did not reach the call, which reads nothing
  // while its answers wait.
  void TakeBack(uint64_t id, const StreamModel& before);
  void Receives(const v1::ExecuteStreamResponse& message);
  // The call has ended well, so every execution has.
  void Ended() const;

 private:
  struct Execution {
    uint32_t begins = 0;
    uint32_t ends = 0;  // those too of bytes that came before a begin
    uint32_t good_ends = 0;
    std::optional<OperatorDesc> desc;  // of the first begin, where it is lawful
    std::string input;                 // that came in order
    bool input_is_right = true;        // none came out of order before it was complete
    bool started = false;
    std::vector<std::string> outputs;
  };

  static void Take(Execution& execution, const v1::TensorChunk& chunk);
  static void CheckAnswer(Execution& execution);

  std::map<uint64_t, Execution> executions_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_FUZZ_STREAM_MODEL_H_
