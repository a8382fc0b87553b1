// What became of a model, for people.
#ifndef OPMILL_CLIENT_CLI_EXPLAIN_REPORT_H_
#define OPMILL_CLIENT_CLI_EXPLAIN_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "opmill/v1/service.pb.h"

namespace opmill {

// Takes the times of a further run where they are shorter.
void TakeShorterTimes(const v1::ExplainModelResponse& run, v1::ExplainModelResponse& best);

bool HasStepTimes(const v1::ExplainModelResponse& explained);
// Of a step: its part of the time of all steps, or if that is not measured, of what they move.
std::vector<double> SharesOf(const v1::ExplainModelResponse& explained);
uint64_t BytesMoved(const v1::ExplainModelResponse& explained);
absl::Duration TimeOfSteps(const v1::ExplainModelResponse& explained);

// The sentences after the table.
std::string ExplainSummary(const v1::ExplainModelResponse& explained);
// A table of the steps with the largest shares, and the summary.
std::string ExplainText(const v1::ExplainModelResponse& explained);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_EXPLAIN_REPORT_H_
