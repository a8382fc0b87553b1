// consumer ADDRESS: sums {1, 2, 3} on the server there, and prints the sum.
#include <cstring>
#include <iostream>
#include <vector>

#include "opmill/client/client.h"
#include "opmill/client/error.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  absl::StatusOr<opmill::Client> client = opmill::Client::Connect(argv[1]);
  if (!client.ok()) {
    std::cerr << opmill::Describe(client.status()) << "\n";
    return 1;
  }
  opmill::v1::OperatorDesc desc;
  opmill::v1::ReduceDesc& reduce = *desc.mutable_reduce();
  reduce.set_function(opmill::v1::REDUCE_FUNCTION_SUM);
  reduce.mutable_input()->set_data_type(opmill::v1::DATA_TYPE_INT32);
  reduce.mutable_input()->add_sizes(3);
  reduce.add_axes(0);
  const int32_t input[] = {1, 2, 3};
  const absl::StatusOr<opmill::ExecutionResult> result = client->Execute(
      desc, absl::MakeConstSpan(reinterpret_cast<const std::byte*>(input), sizeof(input)));
  if (!result.ok()) {
    std::cerr << opmill::Describe(result.status()) << "\n";
    return 1;
  }
  int32_t sum = 0;
  std::memcpy(&sum, result->outputs[0].bytes.data(), sizeof(sum));
  std::cout << sum << "\n";
  return 0;
}
