#include "server/execution/joinable.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
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
        options_(*requested.model->batching),
        limited_(LimitedProgram::Of(*requested.model)) {}

  std::string Key() const override { return AddressText(address_) + onnx::KeyOf(WithRows(0)); }
  bool IsSameAs(const Joinable& other) const override {
    const auto* const model = dynamic_cast<const JoinableModel*>(&other);
    return model != nullptr && model->model_.lock() == model_.lock() && model->options_ == options_;
  }
  const BatchOptions& options() const override { return options_; }
  bool is_operator() const override { return false; }

  JoinedShape ShapeOf(absl::Span<const std::shared_ptr<Execution>> /*members*/,
                      uint32_t rows) const override {
    return {.rows = rows};
  }
  std::shared_ptr<const Program> Find(const JoinedShape& shape) const override {
    const std::shared_ptr<const onnx::Model> model = model_.lock();
    if (model == nullptr) return nullptr;
    auto made = model->FindProgram(WithRows(shape.rows));
    return made == nullptr ? nullptr : ProgramOf(std::move(made));
  }
  absl::StatusOr<JoinedProgram> Make(const JoinedShape& shape,
                                     const CompileLimit& limit) const override {
    JoinedProgram joined = {.program = nullptr, .limited = limited_};
    const std::shared_ptr<const onnx::Model> model = model_.lock();
    if (model == nullptr) return joined;
    ASSIGN_OR_RETURN(auto made, limit.ProgramFor(limited_, *model, WithRows(shape.rows)));
    joined.limited.spent = made->duration;
    joined.program = ProgramOf(std::move(made));
    return joined;
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
  const LimitedProgram limited_;
};

// Rows of outputs that programs compute: those of all shorter ones are the first elements. Of
// 200000 vectors of 768 elements, 64 queries take 150 to 170 ms with k = 16 as well as 128, and 190
// ms with 1024; of 5000 of 64 elements 1.0, 2.4 and 10 ms.
constexpr uint32_t kShortRow = 16;
constexpr uint32_t kMiddleRow = 128;
uint32_t RoundedLength(uint32_t length) {
  if (length <= kShortRow) return kShortRow;
  return std::max(kMiddleRow, std::bit_ceil(length));
}

// An optional input has at most so many bytes in a row if requests with and without it are joined,
// so that many rows have room.
constexpr uint64_t kMostOptionalRow = kMostJoinedBytes / 64;

class JoinableOperator final : public Joinable {
 public:
  // Null if another request's rows could not follow this one's.
  static std::unique_ptr<const Joinable> Of(const ExecutionRequest& request) {
    const OperatorDesc& desc = *request.op;
    if (!desc.schema->has_rows() || request.sources.size() != desc.inputs.size()) return nullptr;
    std::unique_ptr<JoinableOperator> made(new JoinableOperator(desc));
    made->FindOptional(request);
    const uint32_t rows = desc.inputs[0].sizes[0];
    for (size_t i = 0; i < desc.inputs.size(); ++i) {
      const bool has_rows = desc.schema->inputs[i].has_rows;
      const uint32_t own_rows = has_rows ? desc.inputs[i].sizes[0] : 0;
      const bool is_optional = made->may_lack_optional_ && i == desc.schema->inputs.size() - 1;
      const auto& resident = request.sources[i].resident;
      const bool is_shared = resident != nullptr && !is_optional;
      if (is_shared) {
        if (has_rows && (i == 0 || own_rows != 1)) return nullptr;
        made->Share(i, resident);
      } else if (!has_rows || (own_rows != rows && !(own_rows == 1 && is_optional)) ||
                 !IsPacked(desc.inputs[i])) {
        return nullptr;
      }
      made->is_shared_.push_back(is_shared);
    }
    for (const std::optional<TensorDesc>& output : desc.outputs) {
      if (output.has_value() && !IsPacked(*output)) return nullptr;
    }
    const bool has_optional = HasOptional(desc) && !made->may_lack_optional_;
    const JoinedShape one = {
        .rows = 1, .row_length = made->LengthClass(), .has_optional = has_optional};
    absl::StrAppend(&made->key_, ToString(made->At(one)));
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
  const BatchOptions& options() const override { return options_; }
  bool is_operator() const override { return true; }

  JoinedShape ShapeOf(absl::Span<const std::shared_ptr<Execution>> members,
                      uint32_t rows) const override {
    JoinedShape shape = {.rows = rows};
    for (const std::shared_ptr<Execution>& member : members) {
      const OperatorDesc& desc = *member->request().op;
      shape.row_length = std::max(shape.row_length, LengthOf(desc));
      shape.has_optional |= HasOptional(desc);
      if (grows_.has_value()) {
        const uint32_t shared_rows = desc.inputs[*grows_].sizes[0];
        shape.has_optional |= shape.shared_rows != 0 && shared_rows != shape.shared_rows;
        shape.shared_rows = std::max(shape.shared_rows, shared_rows);
      }
    }
    if (shape.row_length == 0) return shape;
    const auto longest_row = desc_.schema->attributes[desc_.schema->RowLengthIndex()].longest_row;
    shape.row_length =
        std::min(RoundedLength(shape.row_length), longest_row(WithSharedRows(shape)));
    return shape;
  }
  std::shared_ptr<const Program> Find(const JoinedShape& shape) const override {
    return std::make_shared<const Program>(ProgramOf(At(shape)));
  }
  absl::StatusOr<JoinedProgram> Make(const JoinedShape& shape,
                                     const CompileLimit& /*limit*/) const override {
    for (const auto& tensor : shared_) {
      if (tensor.expired()) return JoinedProgram();
    }
    return JoinedProgram{.program = Find(shape), .limited = {}};
  }

 private:
  explicit JoinableOperator(const OperatorDesc& desc) : desc_(desc) {}

  static bool HasOptional(const OperatorDesc& desc) {
    return desc.inputs.size() == desc.schema->inputs.size();
  }
  // Whether requests with the optional input and others without it are joined, and others that read
  // another number of rows of the same memory. A resident one is then copied, as those that callers
  // send, for which the host must have its bytes.
  void FindOptional(const ExecutionRequest& request) {
    const OperatorSchema& schema = *desc_.schema;
    const auto ones_if_absent = schema.inputs.back().ones_if_absent;
    if (ones_if_absent == nullptr) return;
    if (HasOptional(desc_)) {
      const auto& resident = request.sources.back().resident;
      if (resident != nullptr && resident->buffer()->bytes().empty()) return;
    }
    uint64_t row_bytes = SpannedBytes(ones_if_absent(desc_));
    if (row_bytes > kMostOptionalRow) return;
    may_lack_optional_ = true;
    for (size_t i = 0; i < desc_.inputs.size(); ++i) {
      const auto& resident = request.sources[i].resident;
      if (!schema.inputs[i].rows_have_ones || resident == nullptr) continue;
      const TensorDesc& input = desc_.inputs[i];
      const uint64_t stride = uint64_t{EffectiveStrides(input)[0]} * ElementBytes(input.data_type);
      // The most rows that any request can read.
      const uint64_t row_size = uint64_t{input.sizes[1]} * ElementBytes(input.data_type);
      const uint64_t rows =
          stride == 0 ? UINT64_MAX : (resident->buffer()->size_bytes() - row_size) / stride + 1;
      if (rows > kMostOptionalRow) continue;
      grows_ = i;
      row_bytes = std::max(row_bytes, rows);
    }
    options_.max_rows =
        static_cast<uint32_t>(std::min<uint64_t>(options_.max_rows, kMostJoinedBytes / row_bytes));
  }
  // Of a tensor that grows, all states in the same memory: they have the same first rows.
  void Share(size_t input, const std::shared_ptr<const ResidentTensor>& resident) {
    std::shared_ptr<const void> shared = resident;
    if (grows_ == input) shared = resident->memory;
    key_ += AddressText(shared.get());
    shared_.push_back(shared);
  }

  // 0 if the operator has no such attribute.
  static uint32_t LengthOf(const OperatorDesc& desc) {
    const OperatorSchema& schema = *desc.schema;
    return schema.has_row_length() ? desc.number(schema.attributes[schema.RowLengthIndex()].name)
                                   : 0;
  }
  // Requests are joined if this is the same for them.
  uint32_t LengthClass() const {
    const uint32_t length = LengthOf(desc_);
    return length == 0 ? 0 : std::max(kMiddleRow, RoundedLength(length));
  }

  OperatorDesc WithSharedRows(const JoinedShape& shape) const {
    OperatorDesc desc = desc_;
    if (grows_.has_value()) desc.inputs[*grows_].sizes[0] = shape.shared_rows;
    return desc;
  }
  OperatorDesc At(const JoinedShape& shape) const {
    OperatorDesc desc = WithSharedRows(shape);
    if (may_lack_optional_) {
      desc.inputs.resize(desc.schema->inputs.size() - 1);
      if (shape.has_optional) {
        desc.inputs.push_back(desc.schema->inputs.back().ones_if_absent(desc));
      }
    }
    for (size_t i = 0; i < desc.inputs.size(); ++i) {
      if (i >= is_shared_.size() || !is_shared_[i]) desc.inputs[i].sizes[0] = shape.rows;
    }
    if (shape.row_length != 0) {
      desc.attributes[desc.schema->RowLengthIndex()] = shape.row_length;
    }
    for (std::optional<TensorDesc>& output : desc.outputs) {
      if (!output.has_value()) continue;
      output->sizes[0] = shape.rows;
      if (shape.row_length != 0) output->sizes[1] = shape.row_length;
      output->strides.clear();
    }
    return desc;
  }

  const OperatorDesc desc_;
  std::vector<bool> is_shared_;  // of the inputs of desc_: resident; others are sent
  std::vector<std::weak_ptr<const void>> shared_;  // their states, or memory
  bool may_lack_optional_ = false;
  std::optional<size_t> grows_;  // an input of which requests may read other numbers of rows
  BatchOptions options_ = {.max_rows = 256};
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
