// Termination requests: SIGTERM and SIGINT, or console events on Windows. A service manager's
// request comes through Request. Also SIGHUP, which requests that files are read again.
#ifndef OPMILL_SERVER_HOST_STOP_SIGNAL_H_
#define OPMILL_SERVER_HOST_STOP_SIGNAL_H_

#include <functional>

namespace opmill {

class StopSignal {
 public:
  // To be called once, before any other thread is started. The object lives as long as the process,
  // because signals may arrive until its end.
  static StopSignal& Install();

  // Returns after a termination request; the next call returns after another one. Until then, calls
  // `reload` for each SIGHUP, on this thread.
  virtual void Wait(const std::function<void()>& reload) = 0;
  virtual void Request() = 0;
  // Makes a Wait on another thread, and every later Wait, return at once.
  virtual void Release() = 0;

 protected:
  ~StopSignal() = default;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_HOST_STOP_SIGNAL_H_
