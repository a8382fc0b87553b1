// Runs operators over one tensor on one device, next to kernels that only read, or copy, the same
// bytes (shaders/bandwidth.hlsl): the limit of the device.
#ifndef OPMILL_TESTS_BENCH_KERNEL_ROWS_H_
#define OPMILL_TESTS_BENCH_KERNEL_ROWS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/engine/device.h"
#include "kernels/plan/plan.h"

namespace opmill {

// Of the kernels by the device's own clock, if it has one; else from the submission to the fence.
inline absl::Duration TimeOf(const RunStatistics& run) {
  return run.device > absl::ZeroDuration() ? run.device : run.executed;
}

class KernelRows {
 public:
  // Plans with these options, unless the device plans for itself.
  KernelRows(Device& device, const PlanOptions& options) : device_(device), options_(options) {}

  // Uses random elements, or the bytes of `file` if it is not empty. Removes all rows.
  absl::Status SetInput(TensorDesc input, const std::string& file);
  const TensorDesc& input() const { return input_; }
  uint64_t bytes() const;

  // Add a row and return its number. Each row has run once when this returns.
  absl::StatusOr<size_t> AddReadOnly();
  absl::StatusOr<size_t> AddCopy();
  // Nothing between the timestamps: what these take themselves. 0 on a device without them.
  absl::StatusOr<size_t> AddEmpty();
  absl::StatusOr<size_t> Add(const OperatorDesc& validated);

  absl::StatusOr<RunStatistics> Run(size_t row);
  // Runs the row. Returns Internal with the first mistake if a sample of its outputs differs from
  // the reference.
  absl::Status Check(size_t row);

 private:
  struct Row {
    std::shared_ptr<const CompiledProgram> compiled;
    std::vector<Range> outputs;
    bool is_operator = false;
    bool copies = false;  // without `compiled`: host threads copy, or only read
  };

  absl::StatusOr<size_t> AddBandwidth(const char* entry, bool copies);
  absl::StatusOr<size_t> AddCpuBandwidth(bool copies);
  absl::StatusOr<size_t> AddCompiled(Row row, const std::vector<uint64_t>& output_bytes);
  absl::StatusOr<size_t> AddPlanned(const OperatorDesc& desc, const OperatorPlan& plan,
                                    bool is_operator);

  Device& device_;
  const PlanOptions options_;
  TensorDesc input_;
  std::shared_ptr<Buffer> input_buffer_;
  // By size and output index. Rows run one after another, so equal outputs may share a buffer.
  std::map<std::pair<uint64_t, size_t>, std::shared_ptr<Buffer>> output_buffers_;
  std::vector<Row> rows_;
};

// operator=reduce function=SUM axes=0,1, operator=top_k axes=0 k=10, and the like, validated.
absl::StatusOr<OperatorDesc> ParseOperator(const TensorDesc& input, const std::string& name,
                                           const std::string& function,
                                           const std::vector<uint32_t>& axes, uint32_t k);

absl::StatusOr<TensorDesc> ParseTensor(const std::string& type, const std::string& sizes);

}  // namespace opmill

#endif  // OPMILL_TESTS_BENCH_KERNEL_ROWS_H_
