// Random inputs for measurements.
#ifndef OPMILL_CLIENT_CLI_RANDOM_ELEMENTS_H_
#define OPMILL_CLIENT_CLI_RANDOM_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "opmill/v1/tensor.pb.h"

namespace opmill {

// Deterministic for a seed. Integers have any value, floats a magnitude between 0.03 and 1.
std::vector<std::byte> RandomElements(v1::DataType type, size_t count, uint64_t seed);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_RANDOM_ELEMENTS_H_
