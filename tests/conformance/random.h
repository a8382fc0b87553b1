// Random numbers that are the same on every platform and standard library.
#ifndef OPMILL_TESTS_CONFORMANCE_RANDOM_H_
#define OPMILL_TESTS_CONFORMANCE_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace opmill {

// SplitMix64: every seed is good.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Bits() {
    uint64_t z = (state_ += 0x9E37'79B9'7F4A'7C15);
    z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9;
    z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EB;
    return z ^ (z >> 31);
  }
  uint64_t Below(uint64_t limit) { return Bits() % limit; }
  bool OneIn(uint64_t count) { return Below(count) == 0; }
  double Unit() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }  // [0, 1)

  template <typename Container>
  const auto& Pick(const Container& choices) {
    return choices[Below(std::size(choices))];
  }
  template <typename T>
  void Shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Below(i)]);
  }

 private:
  uint64_t state_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_RANDOM_H_
