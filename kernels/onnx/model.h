// A model as servers keep it: the graph of its file, and programs for the sizes that requests had.
#ifndef OPMILL_KERNELS_ONNX_MODEL_H_
#define OPMILL_KERNELS_ONNX_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kernels/base/byte_budget.h"
#include "kernels/onnx/explain.h"
#include "kernels/onnx/graph.h"
#include "kernels/onnx/read_model.h"
#include "kernels/onnx/specialize.h"
#include "kernels/program/program.h"

namespace opmill::onnx {

struct ModelLimits {
  ReadLimits read;
  uint64_t constant_bytes = uint64_t{4} << 30;  // of a program, also of those that are computed
  size_t programs = 16;                         // kept, for different sizes
  bool is_batched = false;                      // as in OperatorDesc
  std::shared_ptr<ByteBudget> budget;           // for memory_bytes(); null: no limit
};

struct ModelTensor {
  std::string name;
  ElementType element = ElementType::kUndefined;
  std::vector<int64_t> sizes;  // -1: any
  // Its elements decide which program it is, such as the sizes of a result: they must be given.
  bool is_form = false;
};

struct ModelProgram {
  InputBindings bindings;           // that it is for
  Program program;                  // validated, with chains fused
  std::vector<size_t> inputs;       // for each input of the program, that of the model
  std::vector<TensorType> outputs;  // of the model; the program's are packed, in the same order
  absl::Duration duration;          // of making it
};

// Equal for equal bindings of a model.
std::string KeyOf(const InputBindings& bindings);

// Thread-safe. All work ends soon after a stop of `abandoned`, with Cancelled.
class Model {
 public:
  // Errors are those of ReadModelFile. Unimplemented names all operators and nodes for which
  // devices have no kernel.
  static absl::StatusOr<std::shared_ptr<const Model>> Load(const std::string& path,
                                                           const ModelLimits& limits = {},
                                                           const std::stop_token& abandoned = {});
  // The same, of the bytes of a file without external data.
  static absl::StatusOr<std::shared_ptr<const Model>> Parse(absl::string_view bytes,
                                                            const ModelLimits& limits = {},
                                                            const std::stop_token& abandoned = {});
  // `file_bytes`: of its file, without external data.
  static absl::StatusOr<std::shared_ptr<const Model>> Make(Graph graph,
                                                           const ModelLimits& limits = {},
                                                           uint64_t file_bytes = 0,
                                                           const std::stop_token& abandoned = {});

  const std::vector<ModelTensor>& inputs() const { return inputs_; }
  const std::vector<ModelTensor>& outputs() const { return outputs_; }

  // The program for inputs of these sizes, whose form inputs have these values, if it is kept;
  // otherwise null.
  std::shared_ptr<const ModelProgram> FindProgram(const InputBindings& bindings) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The same; makes it if necessary, which may take long. Errors are those of Specialize,
  // LowerGraph and Validate; ResourceExhausted if its constants exceed the limit, the budget or
  // the memory.
  absl::StatusOr<std::shared_ptr<const ModelProgram>> ProgramFor(
      const InputBindings& bindings, const std::stop_token& abandoned = {}) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // What becomes of each node in the program for these bindings. Makes the program once more, and
  // does not keep it. The model must outlive the result.
  absl::StatusOr<Explanation> Explain(const InputBindings& bindings,
                                      const std::stop_token& abandoned = {}) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Of the graph, and of the constants of the programs that are kept; what they share counts once.
  // Grows when a program is made.
  uint64_t memory_bytes() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return share_.bytes();
  }

 private:
  using Kept = std::list<std::pair<std::string, std::shared_ptr<const ModelProgram>>>;

  Model(Graph graph, const ModelLimits& limits)
      : graph_(std::move(graph)), limits_(limits), share_(limits.budget) {}
  static ReadLimits ReadLimitsOf(const ModelLimits& limits);
  static absl::Status NamingBudget(const ModelLimits& limits, const absl::Status& status);
  absl::Status ReadTensors();
  absl::Status ReadConstants(uint64_t file_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckKernels(const std::stop_token& abandoned) const;
  InputBindings TriedBindings(int64_t first, int64_t size) const;  // of open dimensions
  BuildLimits build_limits(const std::stop_token& abandoned) const;
  // `making` gets what its constants take.
  absl::StatusOr<ModelProgram> MakeProgram(const InputBindings& bindings, ByteShare& making,
                                           const std::stop_token& abandoned) const;
  absl::Status Reserve(uint64_t bytes, ByteShare& making) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<const ModelProgram> FindKept(const std::string& key) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<const ConstantData>> DataOf(const Bytes& bytes,
                                                             ByteShare& making) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t CountBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Graph graph_;
  const ModelLimits limits_;
  std::vector<ModelTensor> inputs_;
  std::vector<ModelTensor> outputs_;
  mutable absl::Mutex mutex_;
  mutable Kept programs_ ABSL_GUARDED_BY(mutex_);  // the last used first
  // Of constants of the graph, which programs share. Null until one needs it.
  mutable absl::flat_hash_map<const std::string*, std::shared_ptr<const ConstantData>> constants_
      ABSL_GUARDED_BY(mutex_);
  uint64_t node_bytes_ = 0;  // an estimate
  mutable ByteShare share_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_MODEL_H_
