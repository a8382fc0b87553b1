#include "server/shared_memory/shared_tensors.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

constexpr uint64_t kStepBytes = uint64_t{4} << 20;  // takes about a millisecond

absl::Status WrongSize(const TensorDesc& tensor, const SharedRange& range,
                       absl::string_view field) {
  return InvalidField(field, absl::StrCat(field, " is ", range.size(), "; ", ToString(tensor),
                                          " takes ", SpannedBytes(tensor), " bytes."));
}

absl::Status NamingKey(const SharedTensor& tensor, absl::Status status) {
  if (status.ok()) return status;
  return WithField(std::move(status), absl::StrCat(tensor.path, ".", tensor.key_field));
}

class OutputWriter {
 public:
  OutputWriter(Executor& executor, std::shared_ptr<Execution> execution,
               std::vector<SharedTensor> outputs)
      : executor_(executor), execution_(std::move(execution)), outputs_(std::move(outputs)) {}

  // False when there is nothing more to write.
  bool Step() {
    const SharedTensor& to = outputs_[next_];
    const std::shared_ptr<BudgetedBuffer> output = execution_->output(to.index);
    if (output == nullptr) return false;  // has ended
    const uint64_t bytes = execution_->output_bytes()[to.index];
    const uint64_t size = std::min(kStepBytes, bytes - offset_);
    const absl::Status written = to.range.Write(
        offset_,
        output->buffer->bytes().subspan(static_cast<size_t>(offset_), static_cast<size_t>(size)));
    if (!written.ok()) {
      executor_.Cancel(execution_, NamingKey(to, written));
      return false;
    }
    offset_ += size;
    if (offset_ == bytes) {
      ++next_;
      offset_ = 0;
    }
    return next_ < outputs_.size();
  }

 private:
  Executor& executor_;
  const std::shared_ptr<Execution> execution_;
  const std::vector<SharedTensor> outputs_;
  size_t next_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace

SharedMemoryCaller SharedMemoryCallerOf(const RequestOrigin& origin) {
  SharedMemoryCaller caller = {.name = origin.caller,
                               .identity = CallerIdentity(origin.caller, origin.peer),
                               .user = origin.user};
  if (origin.connection != nullptr) caller.connection = origin.connection;
  return caller;
}

absl::Status CheckInputRange(const TensorDesc& input, const SharedRange& range,
                             absl::string_view field) {
  if (range.size() >= SpannedBytes(input) && range.size() <= RequiredBytes(input)) {
    return absl::OkStatus();
  }
  return WrongSize(input, range, field);
}

absl::Status CheckOutputRange(const TensorDesc& output, const SharedRange& range,
                              absl::string_view field) {
  return range.size() >= SpannedBytes(output) ? absl::OkStatus() : WrongSize(output, range, field);
}

absl::Status CheckNoOverlap(const std::vector<SharedTensor>& outputs) {
  for (size_t i = 1; i < outputs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!outputs[i].range.Overlaps(outputs[j].range)) continue;
      return InvalidField(outputs[i].path,
                          absl::StrCat(outputs[i].path, " overlaps ", outputs[j].path, "."));
    }
  }
  return absl::OkStatus();
}

InputSource SourceOf(SharedTensor input) {
  return {.read = [input = std::move(input)](uint64_t offset, absl::Span<std::byte> to) {
    return NamingKey(input, input.range.Read(offset, to));
  }};
}

void WriteShared(Executor& executor, const std::shared_ptr<Execution>& execution,
                 std::vector<SharedTensor> outputs, std::function<void()> done) {
  const auto writer = std::make_shared<OutputWriter>(executor, execution, std::move(outputs));
  executor.PostSteps([writer, done = std::move(done)] {
    if (writer->Step()) return true;
    done();
    return false;
  });
}

}  // namespace opmill
