// The system's wish that the process end: SIGTERM and SIGINT, or the console's events on Windows.
#ifndef OPMILL_SERVER_STOP_SIGNAL_H_
#define OPMILL_SERVER_STOP_SIGNAL_H_

#include <memory>

namespace opmill {

class StopSignal {
 public:
  // Before any other thread is started, once.
  static std::unique_ptr<StopSignal> Install();
  virtual ~StopSignal() = default;

  // Returns when the wish has come, and again when it has come once more.
  virtual void Wait() = 0;
  // Makes a Wait under way on another thread, and every later one, return at once.
  virtual void Release() = 0;
  // The process may be ended by the system from now on.
  virtual void Done() = 0;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_STOP_SIGNAL_H_
