// How a device computes a program, and how long each step takes.
#ifndef OPMILL_KERNELS_ENGINE_PROGRAM_REPORT_H_
#define OPMILL_KERNELS_ENGINE_PROGRAM_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace opmill {

// Operators that the device computes together. What they pass to each other is not moved.
struct ProgramStep {
  std::string text;                 // the operators, and the sizes of their tensors
  std::vector<uint32_t> operators;  // nodes of the program; one that takes several steps is in all
  std::vector<uint32_t> inputs;     // steps whose results it reads, ascending
  // The step's parts that follow each other: tasks of the cpu device, groups of a dispatch. Empty
  // if nothing is left to do, as for a join whose inputs are written in their places.
  std::vector<uint64_t> phases;
  uint64_t read_bytes = 0;  // with constants
  uint64_t written_bytes = 0;
};

struct ProgramReport {
  std::vector<ProgramStep> steps;  // in their order
  uint64_t arena_bytes = 0;        // of intermediates and scratch, which share memory
  uint64_t live_bytes = 0;         // the most of these that is needed at the same time
};

// A run that is measured.
struct RunProfile {
  ProgramReport report;               // of the device that computed it
  std::vector<absl::Duration> times;  // of the steps; empty if the device has no clock for them
  uint32_t threads = 0;               // that share each step; 0 on a device without threads
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_ENGINE_PROGRAM_REPORT_H_
