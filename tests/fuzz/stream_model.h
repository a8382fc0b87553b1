// A model of what a caller of ExecuteStream may expect, independent of the server's own state.
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
  // Records a request, in the order of the call. Returns false for a message that the test should
  // not send, because the reference device would need too long.
  bool Sends(const v1::ExecuteStreamRequest& message);
  // Undoes the requests for that execution since `before`: they did not reach the call, which does
  // not read while its responses wait.
  void TakeBack(uint64_t id, const StreamModel& before);
  void Receives(const v1::ExecuteStreamResponse& message);
  // The call has succeeded, so every execution must have ended.
  void Ended() const;

 private:
  struct Execution {
    uint32_t begins = 0;
    uint32_t ends = 0;  // including those for bytes before a begin
    uint32_t good_ends = 0;
    std::optional<OperatorDesc> desc;  // of the first begin, if it is valid
    std::string input;                 // the bytes that arrived in order
    bool input_is_right = true;        // no bytes arrived out of order before it was complete
    bool started = false;
    std::vector<std::string> outputs;
  };

  static void Take(Execution& execution, const v1::TensorChunk& chunk);
  static void CheckAnswer(Execution& execution);

  std::map<uint64_t, Execution> executions_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_FUZZ_STREAM_MODEL_H_
