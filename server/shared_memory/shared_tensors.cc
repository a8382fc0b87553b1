#include "server/shared_memory/shared_tensors.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "server/api/grpc_status.h"

namespace opmill {
namespace {

constexpr uint64_t kStepBytes = uint64_t{4} << 20;  // takes about a millisecond

absl::Status WrongSize(const TensorDesc& tensor, const SharedRange& range,
                       absl::string_view field) {
  return InvalidField(absl::StrCat(field, ".byte_size"),
                      absl::StrCat(field, ".byte_size is ", range.size(), "; ", ToString(tensor),
                                   " takes ", SpannedBytes(tensor), " bytes."));
}

std::string At(absl::string_view field, size_t index) {
  return absl::StrCat(field, "[", index, "]");
}

class OutputWriter {
 public:
  OutputWriter(Executor& executor, std::shared_ptr<Execution> execution,
               std::vector<SharedRange> ranges, std::string field)
      : executor_(executor),
        execution_(std::move(execution)),
        ranges_(std::move(ranges)),
        field_(std::move(field)) {}

  // False when there is nothing more to write.
  bool Step() {
    const std::shared_ptr<BudgetedBuffer> output = execution_->output(index_);
    if (output == nullptr) return false;  // has ended
    const uint64_t bytes = execution_->output_bytes()[index_];
    const uint64_t size = std::min(kStepBytes, bytes - offset_);
    const absl::Status written = ranges_[index_].Write(
        offset_,
        output->buffer->bytes().subspan(static_cast<size_t>(offset_), static_cast<size_t>(size)));
    if (!written.ok()) {
      executor_.Cancel(execution_, UnderPath(At(field_, index_), written));
      return false;
    }
    offset_ += size;
    if (offset_ == bytes) {
      ++index_;
      offset_ = 0;
    }
    return index_ < ranges_.size();
  }

 private:
  Executor& executor_;
  const std::shared_ptr<Execution> execution_;
  const std::vector<SharedRange> ranges_;
  const std::string field_;
  size_t index_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace

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

void ReceiveShared(Executor& executor, const std::shared_ptr<Execution>& execution,
                   std::vector<SharedRange> ranges, std::string field) {
  executor.ReceiveFrom(execution, [ranges = std::move(ranges), field = std::move(field)](
                                      size_t input, uint64_t offset, absl::Span<std::byte> to) {
    return UnderPath(At(field, input), ranges[input].Read(offset, to));
  });
}

void WriteShared(Executor& executor, const std::shared_ptr<Execution>& execution,
                 std::vector<SharedRange> ranges, std::string field, std::function<void()> done) {
  const auto writer =
      std::make_shared<OutputWriter>(executor, execution, std::move(ranges), std::move(field));
  executor.PostSteps([writer, done = std::move(done)] {
    if (writer->Step()) return true;
    done();
    return false;
  });
}

}  // namespace opmill
