// A progress bar for long uploads.
#ifndef OPMILL_CLIENT_CLI_PROGRESS_H_
#define OPMILL_CLIENT_CLI_PROGRESS_H_

#include <cstdint>

#include "absl/time/time.h"

namespace opmill {

// Draws on stderr; its destructor removes the bar.
class ProgressBar {
 public:
  explicit ProgressBar(uint64_t total_bytes);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // For 64 MiB or more, if stderr is a terminal.
  static bool IsWanted(uint64_t total_bytes);

  void Show(uint64_t done_bytes);

 private:
  const uint64_t total_bytes_;
  const absl::Time started_;
  absl::Time shown_ = absl::InfinitePast();
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_PROGRESS_H_
