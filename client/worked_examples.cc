#include "client/worked_examples.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace opmill {
namespace {

constexpr char kArgmin[] = "DML_ARGMIN_OPERATOR_DESC";
constexpr char kReduce[] = "DML_REDUCE_OPERATOR_DESC";
constexpr char kTopK1[] = "DML_TOP_K1_OPERATOR_DESC";
constexpr char kHardmax1[] = "DML_ACTIVATION_HARDMAX1_OPERATOR_DESC";

using Numbers = std::vector<double>;

Numbers ArgminInput() {
  return {1, 2, 3,  //
          3, 0, 4,  //
          2, 5, 2};
}

Numbers ReduceInput() {
  return {1, 2, 3,  //
          3, 0, 4,  //
          2, 4, 2};
}

Numbers DistinctInput() {
  return {0, 1, 10, 11,  //
          3, 2, 9,  8,   //
          4, 5, 6,  7};
}

Numbers TiedInput() {
  return {1, 2, 2, 3,  //
          3, 4, 5, 5,  //
          6, 6, 6, 6};
}

Numbers HardmaxInput() {
  return {12,   0,   //
          -101, 11,  //

          3,    234,  //
          0,    -101};
}

ExampleOutput Indices(std::vector<uint32_t> sizes, Numbers elements) {
  return {true, std::move(sizes), std::move(elements)};
}

ExampleOutput Values(std::vector<uint32_t> sizes, Numbers elements) {
  return {false, std::move(sizes), std::move(elements)};
}

std::vector<WorkedExample> MakeExamples() {
  return {
      {.page = kArgmin,
       .title = "Example 1. Applying argmin to columns",
       .op = "argmin",
       .direction = "increasing",
       .axes = {0},
       .sizes = {3, 3},
       .input = ArgminInput(),
       .outputs = {Indices({1, 3}, {0, 1, 2})}},
      {.page = kArgmin,
       .title = "Example 2. Applying argmin to rows",
       .op = "argmin",
       .direction = "increasing",
       .axes = {1},
       .sizes = {3, 3},
       .input = ArgminInput(),
       .outputs = {Indices({3, 1}, {0, 1, 0})}},
      {.page = kArgmin,
       .title = "Example 3. Applying argmin to all axes (the entire tensor)",
       .op = "argmin",
       .direction = "increasing",
       .axes = {0, 1},
       .sizes = {3, 3},
       .input = ArgminInput(),
       .outputs = {Indices({1, 1}, {4})}},
      {.page = kArgmin,
       .title = "INCREASING returns the index of the first minimum-valued element",
       .op = "argmin",
       .direction = "increasing",
       .axes = {0},
       .sizes = {5},
       .input = {1, 2, 3, 2, 1},
       .outputs = {Indices({1}, {0})}},
      {.page = kArgmin,
       .title = "DECREASING returns the index of the last minimum-valued element",
       .op = "argmin",
       .direction = "decreasing",
       .axes = {0},
       .sizes = {5},
       .input = {1, 2, 3, 2, 1},
       .outputs = {Indices({1}, {4})}},
      {.page = kArgmin,
       .title = "INCREASING is equivalent to REDUCE with ARGMIN: columns",
       .op = "reduce",
       .function = "argmin",
       .axes = {0},
       .sizes = {3, 3},
       .input = ArgminInput(),
       .outputs = {Indices({1, 3}, {0, 1, 2})}},
      {.page = kArgmin,
       .title = "INCREASING is equivalent to REDUCE with ARGMIN: rows",
       .op = "reduce",
       .function = "argmin",
       .axes = {1},
       .sizes = {3, 3},
       .input = ArgminInput(),
       .outputs = {Indices({3, 1}, {0, 1, 0})}},
      {.page = kReduce,
       .title = "Example 1. Applying sum to columns",
       .op = "reduce",
       .function = "sum",
       .axes = {0},
       .sizes = {3, 3},
       .input = ReduceInput(),
       .outputs = {Values({1, 3}, {6, 6, 9})}},
      {.page = kReduce,
       .title = "Example 2. Applying sum to rows",
       .op = "reduce",
       .function = "sum",
       .axes = {1},
       .sizes = {3, 3},
       .input = ReduceInput(),
       .outputs = {Values({3, 1}, {6, 7, 8})}},
      {.page = kReduce,
       .title = "Example 3. Applying sum to all axes (the entire tensor)",
       .op = "reduce",
       .function = "sum",
       .axes = {0, 1},
       .sizes = {3, 3},
       .input = ReduceInput(),
       .outputs = {Values({1, 1}, {21})}},
      {.page = kTopK1,
       .title = "Example 1. The largest of each row",
       .op = "top_k",
       .direction = "decreasing",
       .axes = {3},
       .k = 2,
       .sizes = {1, 1, 3, 4},
       .input = DistinctInput(),
       .outputs = {Values({1, 1, 3, 2}, {11, 10,  //
                                         9, 8,    //
                                         7, 6}),
                   Indices({1, 1, 3, 2}, {3, 2,  //
                                          2, 3,  //
                                          3, 2})}},
      {.page = kTopK1,
       .title = "Example 2. Using a different axis",
       .op = "top_k",
       .direction = "decreasing",
       .axes = {2},
       .k = 2,
       .sizes = {1, 1, 3, 4},
       .input = DistinctInput(),
       .outputs = {Values({1, 1, 2, 4}, {4, 5, 10, 11,  //
                                         3, 2, 9, 8}),
                   Indices({1, 1, 2, 4}, {2, 2, 0, 0,  //
                                          1, 1, 1, 1})}},
      {.page = kTopK1,
       .title = "Example 3. Tied values",
       .op = "top_k",
       .direction = "decreasing",
       .axes = {3},
       .k = 3,
       .sizes = {1, 1, 3, 4},
       .input = TiedInput(),
       .outputs = {Values({1, 1, 3, 3}, {3, 2, 2,  //
                                         5, 5, 4,  //
                                         6, 6, 6}),
                   Indices({1, 1, 3, 3}, {3, 1, 2,  //
                                          2, 3, 1,  //
                                          0, 1, 2})}},
      {.page = kTopK1,
       .title = "Example 4. Increasing axis direction",
       .op = "top_k",
       .direction = "increasing",
       .axes = {3},
       .k = 3,
       .sizes = {1, 1, 3, 4},
       .input = TiedInput(),
       .outputs = {Values({1, 1, 3, 3}, {1, 2, 2,  //
                                         3, 4, 5,  //
                                         6, 6, 6}),
                   Indices({1, 1, 3, 3}, {0, 1, 2,  //
                                          0, 1, 2,  //
                                          0, 1, 2})}},
      {.page = kHardmax1,
       .title = "Example 1. Along the middle axis",
       .op = "hardmax",
       .axes = {1},
       .sizes = {2, 2, 2},
       .input = HardmaxInput(),
       .outputs = {Values({2, 2, 2}, {1, 0,  //
                                      0, 1,  //

                                      1, 1,  //
                                      0, 0})}},
      {.page = kHardmax1,
       .title = "Example 2. Along the first axis",
       .op = "hardmax",
       .axes = {0},
       .sizes = {2, 2, 2},
       .input = HardmaxInput(),
       .outputs = {Values({2, 2, 2}, {1, 0,  //
                                      0, 1,  //

                                      0, 1,  //
                                      1, 0})}},
      {.page = kHardmax1,
       .title = "Example 3. Along the first and the last axis",
       .op = "hardmax",
       .axes = {0, 2},
       .sizes = {2, 2, 2},
       .input = HardmaxInput(),
       .outputs = {Values({2, 2, 2}, {0, 0,  //
                                      0, 1,  //

                                      0, 1,  //
                                      0, 0})}},
  };
}

}  // namespace

const std::vector<WorkedExample>& WorkedExamples() {
  static const auto* const examples = new std::vector<WorkedExample>(MakeExamples());
  return *examples;
}

std::string DescribeCall(const WorkedExample& example) {
  std::string call = example.op;
  if (*example.function) absl::StrAppend(&call, " --function ", example.function);
  absl::StrAppend(&call, example.k > 0 ? " --axis " : " --axes ", absl::StrJoin(example.axes, ","));
  if (example.k > 0) absl::StrAppend(&call, " --k ", example.k);
  if (*example.direction) absl::StrAppend(&call, " --direction ", example.direction);
  return call;
}

}  // namespace opmill
