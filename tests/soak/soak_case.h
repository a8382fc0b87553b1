// Executions whose right answers are known, from a few bytes to 64 MiB.
#ifndef OPMILL_TESTS_SOAK_SOAK_CASE_H_
#define OPMILL_TESTS_SOAK_SOAK_CASE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "client/execution.h"
#include "opmill/v1/operator.pb.h"
#include "tests/conformance/conformance_case.h"
#include "tests/conformance/random.h"

namespace opmill {

// Constant but for what it has seen. Any thread may ask.
class SoakCase {
 public:
  explicit SoakCase(ConformanceCase c);

  const v1::OperatorDesc& desc() const { return desc_; }
  const Inputs& inputs() const { return *inputs_; }
  // Keep the bytes as long as gRPC may read them.
  std::vector<InputBytes> bytes() const;
  std::string line() const { return ToLine(c_); }

  // "" when these are the operator's outputs, by the reference; else the first mistake.
  std::string FindMistake(const std::vector<OutputTensor>& outputs);

 private:
  const ConformanceCase c_;
  v1::OperatorDesc desc_;
  std::shared_ptr<const Inputs> inputs_;
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> right_;  // an answer that was found right
};

class SoakCases {
 public:
  // The same for a seed and count. Without `large` none is longer than some MiB.
  SoakCases(uint64_t seed, uint64_t count, bool large);

  std::vector<v1::OperatorDesc> operators() const;
  absl::Span<const std::unique_ptr<SoakCase>> small() const { return small_; }

  // Small ones far more often.
  SoakCase& Pick(Random& random);
  SoakCase& PickSmall(Random& random) { return *small_[random.Below(small_.size())]; }

 private:
  std::vector<std::unique_ptr<SoakCase>> small_;
  std::vector<std::unique_ptr<SoakCase>> large_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_SOAK_SOAK_CASE_H_
