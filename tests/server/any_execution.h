// An execution for code that does not use its contents.
#ifndef OPMILL_TESTS_SERVER_ANY_EXECUTION_H_
#define OPMILL_TESTS_SERVER_ANY_EXECUTION_H_

#include <memory>
#include <utility>
#include <vector>

#include "kernels/descriptor/validate.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "server/execution/execution.h"

namespace opmill {

inline std::shared_ptr<Execution> AnyExecution(std::shared_ptr<CallerAccount> caller = nullptr,
                                               int32_t priority = 0) {
  ExecutionRequest request;
  request.origin.account = std::move(caller);
  request.priority = priority;
  request.program = std::make_shared<const Program>(
      ProgramOf(*Validate(ReduceDesc{.input = {DataType::kFloat32, {2}, {}}, .axes = {0}})));
  return std::make_shared<Execution>(std::move(request));
}

}  // namespace opmill

#endif  // OPMILL_TESTS_SERVER_ANY_EXECUTION_H_
