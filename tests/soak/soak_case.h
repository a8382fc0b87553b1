// Executions with known results, from a few bytes to 64 MiB.
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

// Immutable except for a cache of the correct result. Thread-safe.
class SoakCase {
 public:
  explicit SoakCase(ConformanceCase c);

  const v1::OperatorDesc& desc() const { return desc_; }
  const Inputs& inputs() const { return *inputs_; }
  // The returned InputBytes keep the bytes alive while gRPC may read them.
  std::vector<InputBytes> bytes() const;
  std::string line() const { return ToLine(c_); }

  // Returns the first mistake compared with the reference, or "".
  std::string FindMistake(const std::vector<OutputTensor>& outputs);

 private:
  const ConformanceCase c_;
  v1::OperatorDesc desc_;
  std::shared_ptr<const Inputs> inputs_;
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> right_;  // a result that was verified
};

class SoakCases {
 public:
  // Deterministic for a seed and count. Without `large`, no case is longer than some MiB.
  SoakCases(uint64_t seed, uint64_t count, bool large);

  std::vector<v1::OperatorDesc> operators() const;
  absl::Span<const std::unique_ptr<SoakCase>> small() const { return small_; }

  // Picks small cases far more often than large ones.
  SoakCase& Pick(Random& random);
  SoakCase& PickSmall(Random& random) { return *small_[random.Below(small_.size())]; }

 private:
  std::vector<std::unique_ptr<SoakCase>> small_;
  std::vector<std::unique_ptr<SoakCase>> large_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_SOAK_SOAK_CASE_H_
