// How a process does, and how that changes.
#ifndef OPMILL_TESTS_SOAK_VITALS_H_
#define OPMILL_TESTS_SOAK_VITALS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace opmill {

struct Vitals {
  double at = 0;  // minutes since the start, or whatever else there was more and more of
  uint64_t resident_bytes = 0;
  uint64_t handles = 0;
  uint64_t threads = 0;
};

// Zeros where there is no such process.
Vitals TakeVitals(pid_t pid, double at);

// Least squares over points of x and y.
struct Slope {
  double per_x = 0;
  double spread = 0;  // the standard error of it
  size_t points = 0;
};
Slope FitSlope(const std::vector<std::pair<double, double>>& points);

// By how much each may grow.
struct VitalBounds {
  const char* unit = "min";  // of Vitals::at
  double resident_bytes_per_unit = 0;
  uint64_t handles = 0;
  uint64_t threads = 0;
};

// Judges what was taken at rest, but for the first third, in which caches and pools fill up.
// Answers with lines of text; `held` tells whether nothing grew past its bound. Memory has, where
// its slope is past the bound by more than twice its spread.
std::string JudgeVitals(const std::vector<Vitals>& all, const VitalBounds& bounds, bool& held);

}  // namespace opmill

#endif  // OPMILL_TESTS_SOAK_VITALS_H_
