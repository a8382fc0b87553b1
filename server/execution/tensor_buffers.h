// The memory of an execution's inputs and outputs.
#ifndef OPMILL_SERVER_EXECUTION_TENSOR_BUFFERS_H_
#define OPMILL_SERVER_EXECUTION_TENSOR_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/descriptor/tensor.h"
#include "kernels/engine/device.h"
#include "kernels/program/program.h"
#include "server/execution/memory_budget.h"

namespace opmill {

// A buffer and its share of the budget. Every user of the bytes holds it: the device during the
// run, the transport until it has sent the last byte.
struct BudgetedBuffer {
  std::shared_ptr<Buffer> buffer;
  MemoryBudget::Share share;
};

// The tensors of that kind, in their order.
std::vector<TensorDesc> TensorsOf(const Program& program, ValueKind kind);

// What an execution takes.
struct BufferSizes {
  // `incremental_bytes`: the memory of an incremental run, which keeps no input; 0 if the run is
  // not incremental.
  static BufferSizes Of(const Program& program, uint64_t incremental_bytes);

  uint64_t total() const;

  std::vector<uint64_t> inputs;  // what is allocated for them; 0: they are resident
  std::vector<uint64_t> outputs;
  uint64_t largest_tensor = 0;  // of the program, even if it is not kept
  bool is_incremental = false;
};

// Not thread-safe. The destructor releases every buffer and share that has no other user.
class TensorBuffers {
 public:
  TensorBuffers() = default;

  // Reserves shares for all buffers, for the caller whose bytes `holding` counts. The buffers are
  // null at first. `has_others` as in SharedLimit::LimitFor.
  static absl::StatusOr<TensorBuffers> Reserve(MemoryBudget& budget, const BufferSizes& sizes,
                                               const std::shared_ptr<Holding>& holding,
                                               bool has_others);
  // `sizes` as for Reserve.
  absl::Status AllocateInputs(Device& device, const BufferSizes& sizes);
  void SetInput(size_t index, std::shared_ptr<Buffer> buffer) {
    inputs_[index]->buffer = std::move(buffer);
  }
  void SetOutput(size_t index, std::shared_ptr<Buffer> buffer) {
    outputs_[index]->buffer = std::move(buffer);
  }

  const std::shared_ptr<BudgetedBuffer>& input(size_t index) const { return inputs_[index]; }
  const std::shared_ptr<BudgetedBuffer>& output(size_t index) const { return outputs_[index]; }

  // For a run, which holds the buffers with their shares. From then on only it holds the inputs.
  Bindings Bind();

 private:
  std::vector<std::shared_ptr<BudgetedBuffer>> inputs_;
  std::vector<std::shared_ptr<BudgetedBuffer>> outputs_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_TENSOR_BUFFERS_H_
