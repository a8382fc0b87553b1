// Measures a process's memory, handles and threads, and how they change.
#ifndef OPMILL_TESTS_SOAK_VITALS_H_
#define OPMILL_TESTS_SOAK_VITALS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace opmill {

struct Vitals {
  double at = 0;  // minutes since the start, or another growing quantity
  uint64_t resident_bytes = 0;
  uint64_t handles = 0;
  uint64_t threads = 0;
};

// Returns zeros if there is no such process.
Vitals TakeVitals(pid_t pid, double at);

// A least-squares fit over points of x and y.
struct Slope {
  double per_x = 0;
  double spread = 0;  // its standard error
  size_t points = 0;
};
Slope FitSlope(const std::vector<std::pair<double, double>>& points);

// How much each value may grow.
struct VitalBounds {
  const char* unit = "min";  // of Vitals::at
  double resident_bytes_per_unit = 0;
  uint64_t handles = 0;
  uint64_t threads = 0;
};

// Evaluates measurements at rest, except the first third, in which caches and pools fill up.
// Returns lines of text; `held` is set to whether everything stayed within its bound. Memory
// exceeds it if the slope is above the bound by more than twice its standard error.
std::string JudgeVitals(const std::vector<Vitals>& all, const VitalBounds& bounds, bool& held);

}  // namespace opmill

#endif  // OPMILL_TESTS_SOAK_VITALS_H_
