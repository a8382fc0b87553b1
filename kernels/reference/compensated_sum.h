#ifndef OPMILL_KERNELS_REFERENCE_COMPENSATED_SUM_H_
#define OPMILL_KERNELS_REFERENCE_COMPENSATED_SUM_H_

#include <cmath>

namespace opmill {

// Neumaier's compensated sum: rounding errors of the additions are summed separately.
class CompensatedSum {
 public:
  void Add(double x) {
    const double sum = sum_ + x;
    lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - sum) + x : (x - sum) + sum_;
    sum_ = sum;
  }
  // For inf and NaN the compensation is meaningless.
  double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_REFERENCE_COMPENSATED_SUM_H_
