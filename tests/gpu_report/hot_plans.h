// The plans for hardware of the shapes that users need most often.
#ifndef OPMILL_TESTS_GPU_REPORT_HOT_PLANS_H_
#define OPMILL_TESTS_GPU_REPORT_HOT_PLANS_H_

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "kernels/plan/plan.h"

namespace opmill {

struct TitledPlan {
  std::string title;  // "sum FLOAT32 [8192,4096] over 1"
  OperatorPlan plan;
  uint64_t multiplications = 0;  // of a product; others are bound by memory
};

// For an adapter with so many compute units.
std::vector<TitledPlan> HotPlans(uint32_t compute_units);

// The plans of rows of h100_rows.txt.
std::vector<TitledPlan> MeasuredPlans(uint32_t compute_units, std::istream& rows);

}  // namespace opmill

#endif  // OPMILL_TESTS_GPU_REPORT_HOT_PLANS_H_
