#include "server/execution/joinable.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/onnx/model.h"
#include "server/models/requested_model.h"
#include "server/tensors/tensor_store.h"

namespace opmill {
namespace {

std::string AddressText(const void* address) {
  return absl::StrCat(absl::Hex(reinterpret_cast<uintptr_t>(address)), " ");
}

class JoinableModel final : public Joinable {
 public:
  explicit JoinableModel(const RequestedModel& requested)
      : model_(requested.model->graph),
        address_(requested.model->graph.get()),
        bindings_(requested.graph->bindings),
        options_(*requested.model->batching) {}

  std::string Key() const override { return AddressText(address_) + onnx::KeyOf(WithRows(0)); }
  bool IsSameAs(const Joinable& other) const override {
    const auto* const model = dynamic_cast<const JoinableModel*>(&other);
    return model != nullptr && model->model_.lock() == model_.lock() && model->options_ == options_;
  }
  const BatchOptions& options() const override { return options_; }

  std::shared_ptr<const Program> Find(uint32_t rows) const override {
    const std::shared_ptr<const onnx::Model> model = model_.lock();
    if (model == nullptr) return nullptr;
    auto made = model->FindProgram(WithRows(rows));
    return made == nullptr ? nullptr : ProgramOf(std::move(made));
  }
  absl::StatusOr<std::shared_ptr<const Program>> Make(uint32_t rows) const override {
    const std::shared_ptr<const onnx::Model> model = model_.lock();
    if (model == nullptr) return nullptr;
    auto made = model->ProgramFor(WithRows(rows));
    if (!made.ok()) return made.status();
    return ProgramOf(*std::move(made));
  }

 private:
  onnx::InputBindings WithRows(uint32_t rows) const {
    onnx::InputBindings bindings = bindings_;
    for (auto& [name, sizes] : bindings.sizes) sizes[0] = rows;
    return bindings;
  }
  static std::shared_ptr<const Program> ProgramOf(std::shared_ptr<const onnx::ModelProgram> made) {
    const Program* const program = &made->program;
    return {std::move(made), program};
  }

  const std::weak_ptr<const onnx::Model> model_;  // an unloaded model is not kept
  const void* const address_;
  const onnx::InputBindings bindings_;
  const BatchOptions options_;
};

class JoinableOperator final : public Joinable {
 public:
  // Null if another request's rows could not follow this one's.
  static std::unique_ptr<const Joinable> Of(const ExecutionRequest& request) {
    const OperatorDesc& desc = *request.op;
    if (!desc.schema->has_rows() || request.sources.size() != desc.inputs.size()) return nullptr;
    std::unique_ptr<JoinableOperator> made(new JoinableOperator(desc));
    const uint32_t rows = desc.inputs[0].sizes[0];
    for (size_t i = 0; i < desc.inputs.size(); ++i) {
      const bool has_rows = desc.schema->inputs[i].has_rows;
      const auto& resident = request.sources[i].resident;
      if (resident != nullptr) {
        if (has_rows && (i == 0 || desc.inputs[i].sizes[0] != 1)) return nullptr;
        made->shared_.push_back(resident);
        made->key_ += AddressText(resident.get());
      } else {
        if (!has_rows || desc.inputs[i].sizes[0] != rows || !IsPacked(desc.inputs[i])) {
          return nullptr;
        }
        made->with_rows_.push_back(i);
      }
    }
    for (const std::optional<TensorDesc>& output : desc.outputs) {
      if (output.has_value() && !IsPacked(*output)) return nullptr;
    }
    absl::StrAppend(&made->key_, ToString(made->WithRows(1)));
    return made;
  }

  std::string Key() const override { return key_; }
  bool IsSameAs(const Joinable& other) const override {
    const auto* const same = dynamic_cast<const JoinableOperator*>(&other);
    if (same == nullptr || same->shared_.size() != shared_.size()) return false;
    for (size_t i = 0; i < shared_.size(); ++i) {
      if (same->shared_[i].lock() != shared_[i].lock()) return false;
    }
    return true;
  }
  const BatchOptions& options() const override {
    static const auto* const kOptions = new BatchOptions{.max_rows = 256};
    return *kOptions;
  }

  std::shared_ptr<const Program> Find(uint32_t rows) const override {
    return std::make_shared<const Program>(ProgramOf(WithRows(rows)));
  }
  absl::StatusOr<std::shared_ptr<const Program>> Make(uint32_t rows) const override {
    for (const auto& tensor : shared_) {
      if (tensor.expired()) return nullptr;
    }
    return Find(rows);
  }

 private:
  explicit JoinableOperator(const OperatorDesc& desc) : desc_(desc) {}

  OperatorDesc WithRows(uint32_t rows) const {
    OperatorDesc desc = desc_;
    for (const size_t i : with_rows_) desc.inputs[i].sizes[0] = rows;
    for (std::optional<TensorDesc>& output : desc.outputs) {
      if (output.has_value()) output->sizes[0] = rows;
    }
    return desc;
  }

  const OperatorDesc desc_;
  std::vector<size_t> with_rows_;                            // inputs that callers send
  std::vector<std::weak_ptr<const ResidentTensor>> shared_;  // the other inputs
  std::string key_;
};

}  // namespace

std::unique_ptr<const Joinable> Joinable::Of(const ExecutionRequest& request) {
  if (!request.kept.empty() || request.profile != nullptr) return nullptr;
  if (request.op.has_value()) return JoinableOperator::Of(request);
  const RequestedModel* const requested = request.model.get();
  if (requested == nullptr || !requested->model->batching.has_value()) return nullptr;
  for (const InputSource& source : request.sources) {
    if (source.resident != nullptr) return nullptr;
  }
  return std::make_unique<JoinableModel>(*requested);
}

}  // namespace opmill
