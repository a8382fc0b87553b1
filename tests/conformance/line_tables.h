// Tables of cases for what the systematic one reaches too rarely, as lines.
#ifndef OPMILL_TESTS_CONFORMANCE_LINE_TABLES_H_
#define OPMILL_TESTS_CONFORMANCE_LINE_TABLES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {

struct LineTable {
  const char* name;
  std::vector<std::string> (*lines)(DataType type);
};

absl::Span<const LineTable> LineTables();

std::vector<std::string> SumsThatRoundUp();
// Additions whose inputs start at different places in their views.
std::vector<std::string> AddTogether();

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_LINE_TABLES_H_
