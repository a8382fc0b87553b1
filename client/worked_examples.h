// The examples of DirectML's reference pages, as data.
#ifndef OPMILL_CLIENT_WORKED_EXAMPLES_H_
#define OPMILL_CLIENT_WORKED_EXAMPLES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace opmill {

struct ExampleOutput {
  bool is_index = false;  // UINT32, otherwise FLOAT32
  std::vector<uint32_t> sizes;
  std::vector<double> elements;  // in row-major order
};

// Names are those of the command line: "argmin", "sum", "decreasing". The input is FLOAT32.
struct WorkedExample {
  const char* page = "";
  const char* title = "";
  const char* op = "";
  const char* function = "";   // of reduce
  const char* direction = "";  // of argmin, argmax and top_k
  std::vector<uint32_t> axes;  // for top_k, its axis
  uint32_t k = 0;              // of top_k
  std::vector<uint32_t> sizes;
  std::vector<double> input;
  std::vector<ExampleOutput> outputs;
};

// In the order of the pages.
const std::vector<WorkedExample>& WorkedExamples();

// The example as a command line: "argmin --axes 0 --direction increasing".
std::string DescribeCall(const WorkedExample& example);

}  // namespace opmill

#endif  // OPMILL_CLIENT_WORKED_EXAMPLES_H_
