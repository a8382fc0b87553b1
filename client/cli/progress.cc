#include "client/cli/progress.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_format.h"
#include "kernels/base/process_io.h"
#include "kernels/base/steady_time.h"

namespace opmill {
namespace {

constexpr uint64_t kMinBytes = uint64_t{64} << 20;
constexpr size_t kBarWidth = 32;
constexpr absl::Duration kInterval = absl::Milliseconds(100);

}  // namespace

ProgressBar::ProgressBar(uint64_t total_bytes) : total_bytes_(total_bytes), started_(SteadyNow()) {}

ProgressBar::~ProgressBar() {
  if (shown_ != absl::InfinitePast()) std::fputs("\r\x1b[K", stderr);
}

bool ProgressBar::IsWanted(uint64_t total_bytes) {
  return total_bytes >= kMinBytes && StderrIsTerminal();
}

void ProgressBar::Show(uint64_t done_bytes) {
  const absl::Time now = SteadyNow();
  if (now - shown_ < kInterval && done_bytes < total_bytes_) return;
  shown_ = now;
  const double fraction = static_cast<double>(done_bytes) / static_cast<double>(total_bytes_);
  const auto filled = static_cast<size_t>(fraction * kBarWidth);
  const double seconds = absl::ToDoubleSeconds(now - started_);
  const double mebibytes = static_cast<double>(done_bytes) / (1 << 20);
  const std::string line = absl::StrFormat(
      "\r\x1b[Kupload [%s%s] %3.0f%%  %.0f of %.0f MiB  %.0f MiB/s", std::string(filled, '#'),
      std::string(kBarWidth - filled, '.'), fraction * 100, mebibytes,
      static_cast<double>(total_bytes_) / (1 << 20), seconds > 0 ? mebibytes / seconds : 0);
  std::fputs(line.c_str(), stderr);
}

}  // namespace opmill
