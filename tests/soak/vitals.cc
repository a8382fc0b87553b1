#include "tests/soak/vitals.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace opmill {
namespace {

constexpr size_t kLeastSamples = 4;  // for a significant slope

uint64_t CountEntries(const std::string& folder) {
  std::error_code error;
  uint64_t count = 0;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    ++count;
  }
  return count;
}

uint64_t Median(std::vector<uint64_t> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// From the first to the last third of the samples.
std::string JudgeCount(const char* name, const std::vector<Vitals>& samples,
                       uint64_t Vitals::*count, uint64_t bound, bool& held) {
  const size_t third = std::max<size_t>(1, samples.size() / 3);
  std::vector<uint64_t> first;
  std::vector<uint64_t> last;
  for (size_t i = 0; i < third; ++i) {
    first.push_back(samples[i].*count);
    last.push_back(samples[samples.size() - 1 - i].*count);
  }
  const uint64_t before = Median(first);
  const uint64_t after = Median(last);
  const bool grew = after > before + bound;
  held = held && !grew;
  return absl::StrFormat("%s at rest: %d, in the end %d; %d more are allowed%s\n", name, before,
                         after, bound, grew ? ": GREW" : "");
}

}  // namespace

Vitals TakeVitals(pid_t pid, double at) {
  const std::string folder = absl::StrCat("/proc/", pid);
  Vitals vitals = {.at = at};
  uint64_t pages = 0;
  std::ifstream(folder + "/statm") >> pages >> vitals.resident_bytes;
  vitals.resident_bytes *= static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  vitals.handles = CountEntries(folder + "/fd");
  vitals.threads = CountEntries(folder + "/task");
  return vitals;
}

Slope FitSlope(const std::vector<std::pair<double, double>>& points) {
  Slope slope = {.points = points.size()};
  if (points.size() < 3) return slope;
  const double n = static_cast<double>(points.size());
  double mean_x = 0;
  double mean_y = 0;
  for (const auto& [x, y] : points) {
    mean_x += x / n;
    mean_y += y / n;
  }
  double xx = 0;
  double xy = 0;
  for (const auto& [x, y] : points) {
    xx += (x - mean_x) * (x - mean_x);
    xy += (x - mean_x) * (y - mean_y);
  }
  if (xx == 0) return slope;
  slope.per_x = xy / xx;
  double residues = 0;
  for (const auto& [x, y] : points) {
    const double residue = y - mean_y - slope.per_x * (x - mean_x);
    residues += residue * residue;
  }
  slope.spread = std::sqrt(residues / (n - 2) / xx);
  return slope;
}

std::string JudgeVitals(const std::vector<Vitals>& all, const VitalBounds& bounds, bool& held) {
  const std::vector<Vitals> samples(all.begin() + all.size() / 3, all.end());
  if (samples.size() < kLeastSamples) {
    held = false;
    return absl::StrFormat("%d samples at rest; a verdict takes %d\n", samples.size(),
                           kLeastSamples);
  }
  std::vector<std::pair<double, double>> points;
  for (const Vitals& sample : samples) {
    points.emplace_back(sample.at, static_cast<double>(sample.resident_bytes));
  }
  const Slope slope = FitSlope(points);
  const bool grew = slope.per_x - 2 * slope.spread > bounds.resident_bytes_per_unit;
  held = !grew;
  constexpr double kMiB = 1 << 20;
  std::string text = absl::StrFormat(
      "memory at rest: %.1f MiB, in the end %.1f MiB; %+.3f MiB/%s, spread %.3f, over %d samples "
      "of %.1f %s; %.3f are allowed%s\n",
      samples.front().resident_bytes / kMiB, samples.back().resident_bytes / kMiB,
      slope.per_x / kMiB, bounds.unit, slope.spread / kMiB, slope.points,
      samples.back().at - samples.front().at, bounds.unit, bounds.resident_bytes_per_unit / kMiB,
      grew ? ": GREW" : "");
  text += JudgeCount("handles", samples, &Vitals::handles, bounds.handles, held);
  text += JudgeCount("threads", samples, &Vitals::threads, bounds.threads, held);
  return text;
}

}  // namespace opmill
