// To be preloaded: sets the time of day of one process forward or back. The file that STEP_CLOCK
// names has the step, in seconds, as text. Every other clock is left alone, and so are the kernel's
// waits for a time of day.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace {

time_t Step() {
  static const char* const path = std::getenv("STEP_CLOCK");
  const int saved = errno;
  char text[32] = {};
  const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    if (read(file, text, sizeof text - 1) < 0) text[0] = '\0';
    close(file);
  }
  errno = saved;
  return std::atoll(text);
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* to) noexcept {
  static auto* const next = Next<int(clockid_t, timespec*)>("clock_gettime");
  const int result = next(clock, to);
  if (clock == CLOCK_REALTIME) to->tv_sec += Step();
  return result;
}

int gettimeofday(timeval* __restrict to, void* __restrict zone) noexcept {
  static auto* const next = Next<int(timeval*, void*)>("gettimeofday");
  const int result = next(to, zone);
  to->tv_sec += Step();
  return result;
}

time_t time(time_t* to) noexcept {
  static auto* const next = Next<time_t(time_t*)>("time");
  const time_t now = next(nullptr) + Step();
  if (to != nullptr) *to = now;
  return now;
}

}  // extern "C"
