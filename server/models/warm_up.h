// model_warmup of a configuration: inputs for which a model is computed before it is served.
#ifndef OPMILL_SERVER_MODELS_WARM_UP_H_
#define OPMILL_SERVER_MODELS_WARM_UP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/descriptor/tensor.h"
#include "server/models/model.h"

namespace opmill {

struct WarmUp {
  // Fills `to` with the packed elements of an input from byte `offset` on. Thread-safe.
  using Elements = std::function<void(uint64_t offset, absl::Span<std::byte> to)>;

  uint32_t count = 1;
  // Of the model, in its order.
  std::vector<TensorDesc> inputs;
  std::vector<Elements> elements;
};

// "model_warmup[1].inputs.x"; without a name, that of the warm-up.
std::string WarmUpField(size_t index, const std::string& input = "");

// One of model.warm_ups. Reads its files. Errors name the field in the configuration.
absl::StatusOr<WarmUp> ReadWarmUp(const Model& model, size_t index);

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_WARM_UP_H_
