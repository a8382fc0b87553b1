// The system's wish that the process end: SIGTERM and SIGINT, or the console's events on Windows. A
// service manager's comes through Request. Beside it the wish that it read its files again: SIGHUP.
#ifndef OPMILL_SERVER_HOST_STOP_SIGNAL_H_
#define OPMILL_SERVER_HOST_STOP_SIGNAL_H_

#include <functional>

namespace opmill {

class StopSignal {
 public:
  // Before any other thread is started, once. It stays as long as the process: the system may speak
  // up to the last moment.
  static StopSignal& Install();

  // Returns when the wish to end has come, and again when it has come once more. Meanwhile calls
  // `reload` for each SIGHUP, on this thread.
  virtual void Wait(const std::function<void()>& reload) = 0;
  virtual void Request() = 0;
  // Makes a Wait under way on another thread, and every later one, return at once.
  virtual void Release() = 0;

 protected:
  ~StopSignal() = default;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_HOST_STOP_SIGNAL_H_
