// How near operators come to what the device can do: one of each kind over every axis of one
// tensor, beside a kernel that only reads and one that only copies the same bytes, all interleaved
// in one run. Prints a table of medians with their spread.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/d3d12/device.h"
#include "kernels/errors.h"
#include "kernels/half.h"
#include "kernels/plan_builder.h"
#include "kernels/validate.h"

ABSL_FLAG(std::string, sizes, "8192,8192", "sizes of the input");
ABSL_FLAG(std::string, type, "FLOAT32", "its data type");
ABSL_FLAG(std::string, only, "", "run the rows whose name holds this");
ABSL_FLAG(int, repetitions, 7, "interleaved runs of each row");
ABSL_FLAG(std::string, device, "auto", "auto, hardware or software");
ABSL_FLAG(std::string, k, "10", "values of k for top_k");

namespace opmill {
namespace {

struct Row {
  std::string name;
  bool writes_all = false;  // measured against the copy, not the read
  std::shared_ptr<const CompiledOperator> compiled;
  std::vector<std::shared_ptr<HostBuffer>> outputs;
  std::vector<double> seconds;

  double Quantile(double q) const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<size_t>(std::lround(q * static_cast<double>(sorted.size() - 1)))];
  }
};

// `entry` of shaders/bandwidth.hlsl over the whole input.
OperatorPlan BandwidthPlan(const char* entry, uint64_t bytes, bool copies,
                           const PlanOptions& options) {
  constexpr uint64_t kLaneVectors = 512;
  PlanBuilder builder(options);
  const uint64_t vectors = bytes / kVectorBytes;
  const uint64_t groups = CeilDiv(vectors, options.threads * kLaneVectors);
  const uint64_t written = copies ? vectors : groups * options.threads;
  Dispatch dispatch;
  dispatch.kernel = builder.Kernel({"bandwidth", entry, {{"THREADS", options.threads}}});
  dispatch.reads[0] = {.role = BufferRole::kInput, .element_count = vectors};
  dispatch.writes[0] = {.role = BufferRole::kOutput0, .element_count = written};
  dispatch.constants.split_items = kLaneVectors;
  dispatch.constants.item_count = static_cast<uint32_t>(vectors);
  SetGroups(dispatch, groups);
  builder.Add(std::move(dispatch));
  return *builder.Finish(bytes, {written * kVectorBytes});
}

class Bench {
 public:
  Bench(Device& device, TensorDesc input) : device_(device), input_(std::move(input)) {}

  absl::Status Run() {
    bytes_ = RequiredBytes(input_);
    ASSIGN_OR_RETURN(input_buffer_, device_.Allocate(bytes_, BufferUse::kInput));
    FillInput();
    RETURN_IF_ERROR(AddBandwidth());
    RETURN_IF_ERROR(AddOperators());
    for (Row& row : rows_) RETURN_IF_ERROR(Once(row));
    for (Row& row : rows_) row.seconds.clear();  // the first run of each warmed up
    for (int i = 0; i < absl::GetFlag(FLAGS_repetitions); ++i) {
      for (Row& row : rows_) RETURN_IF_ERROR(Once(row));
    }
    Print();
    return absl::OkStatus();
  }

 private:
  void FillInput() {
    std::mt19937_64 random(1);
    absl::Span<std::byte> bytes = input_buffer_->bytes();
    if (input_.data_type == DataType::kFloat32) {
      auto* values = reinterpret_cast<float*>(bytes.data());
      for (size_t i = 0; i < bytes.size() / 4; ++i) {
        values[i] = static_cast<float>(static_cast<int64_t>(random() % 2000001) - 1000000) / 1000;
      }
    } else if (input_.data_type == DataType::kFloat16) {
      auto* values = reinterpret_cast<uint16_t*>(bytes.data());
      for (size_t i = 0; i < bytes.size() / 2; ++i) {
        values[i] = FloatToHalf(static_cast<float>(static_cast<int>(random() % 2001) - 1000));
      }
    } else {
      for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
        const uint64_t bits = random();
        std::memcpy(bytes.data() + i, &bits, 8);
      }
    }
  }

  absl::Status AddPlanned(std::string name, bool writes_all, const OperatorDesc& desc,
                          OperatorPlan plan) {
    const std::string& only = absl::GetFlag(FLAGS_only);
    if (!rows_.empty() && rows_.size() > 1 && !absl::StrContains(name, only)) {
      return absl::OkStatus();
    }
    Row row = {.name = std::move(name), .writes_all = writes_all};
    ASSIGN_OR_RETURN(row.compiled, device_.Compile(desc, std::move(plan)));
    for (uint64_t size : row.compiled->plan().output_bytes) {
      // Rows run one after another, so that equal outputs may share a buffer.
      std::shared_ptr<HostBuffer>& buffer = buffers_[{size, row.outputs.size()}];
      if (buffer == nullptr) {
        ASSIGN_OR_RETURN(buffer, device_.Allocate(size, BufferUse::kOutput));
      }
      row.outputs.push_back(buffer);
    }
    rows_.push_back(std::move(row));
    return absl::OkStatus();
  }

  absl::Status AddBandwidth() {
    const OperatorDesc stand_in = HardmaxDesc{.input = input_, .output = input_, .axes = {0}};
    RETURN_IF_ERROR(AddPlanned("read only", false, stand_in,
                               BandwidthPlan("ReadOnly", bytes_, false, device_.plan_options())));
    return AddPlanned("copy", true, stand_in,
                      BandwidthPlan("Copy", bytes_, true, device_.plan_options()));
  }

  // A row for the operator, unless its pages do not allow the type.
  absl::Status Add(const std::string& name, bool writes_all, const OperatorDesc& desc) {
    const absl::StatusOr<OperatorDesc> validated = Validate(desc);
    if (!validated.ok()) return absl::OkStatus();
    ASSIGN_OR_RETURN(OperatorPlan plan, MakePlan(*validated, device_.plan_options()));
    return AddPlanned(name, writes_all, *validated, std::move(plan));
  }

  absl::Status AddOperators() {
    std::vector<std::vector<uint32_t>> patterns;
    std::vector<uint32_t> all;
    for (uint32_t axis = 0; axis < input_.sizes.size(); ++axis) {
      patterns.push_back({axis});
      all.push_back(axis);
    }
    if (all.size() > 1) patterns.push_back(all);
    for (const std::vector<uint32_t>& axes : patterns) {
      const std::string where = absl::StrCat(" over axes ", absl::StrJoin(axes, ","));
      for (ReduceFunction function :
           {ReduceFunction::kSum, ReduceFunction::kMax, ReduceFunction::kL2,
            ReduceFunction::kAverage, ReduceFunction::kLogSumExp}) {
        RETURN_IF_ERROR(Add(absl::StrCat("reduce ", ToString(function), where), false,
                            ReduceDesc{.function = function, .input = input_, .axes = axes}));
      }
      RETURN_IF_ERROR(
          Add(absl::StrCat("argmax", where), false, ArgReduceDesc{.input = input_, .axes = axes}));
      RETURN_IF_ERROR(
          Add(absl::StrCat("hardmax", where), true, HardmaxDesc{.input = input_, .axes = axes}));
      if (axes.size() > 1) continue;
      for (absl::string_view text : absl::StrSplit(absl::GetFlag(FLAGS_k), ',')) {
        TopKDesc desc = {.input = input_, .axis = axes[0]};
        if (!absl::SimpleAtoi(text, &desc.k)) return absl::InvalidArgumentError("--k");
        RETURN_IF_ERROR(Add(absl::StrCat("top_k k=", text, where), false, desc));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Once(Row& row) {
    ASSIGN_OR_RETURN(const RunStatistics statistics,
                     device_.RunAndWait(row.compiled, {input_buffer_, row.outputs}));
    row.seconds.push_back(absl::ToDoubleSeconds(statistics.executed));
    return absl::OkStatus();
  }

  void Print() const {
    std::cout << "device: " << device_.info().name << " (" << device_.info().driver << ")\n"
              << "input:  " << ToString(input_) << ", " << bytes_ << " bytes\n"
              << absl::StrFormat("%-36s %10s %19s %8s %7s\n", "", "median ms", "10%..90% ms",
                                 "GB/s", "share");
    for (const Row& row : rows_) {
      const double median = row.Quantile(0.5);
      const Row& limit = rows_[row.writes_all ? 1 : 0];
      std::cout << absl::StrFormat("%-36s %10.2f %9.2f..%8.2f %8.2f %7.2f\n", row.name,
                                   median * 1e3, row.Quantile(0.1) * 1e3, row.Quantile(0.9) * 1e3,
                                   static_cast<double>(bytes_) / median / 1e9,
                                   limit.Quantile(0.5) / median);
    }
    std::cout << "share: of the read-only kernel's speed; of the copy's for hardmax\n";
  }

  Device& device_;
  TensorDesc input_;
  uint64_t bytes_ = 0;
  std::shared_ptr<HostBuffer> input_buffer_;
  std::map<std::pair<uint64_t, size_t>, std::shared_ptr<HostBuffer>> buffers_;
  std::vector<Row> rows_;
};

absl::Status Main() {
  TensorDesc input;
  for (DataType type : kAllDataTypes) {
    if (ToString(type) == absl::GetFlag(FLAGS_type)) input.data_type = type;
  }
  for (absl::string_view text : absl::StrSplit(absl::GetFlag(FLAGS_sizes), ',')) {
    uint32_t size = 0;
    if (!absl::SimpleAtoi(text, &size)) return absl::InvalidArgumentError("--sizes");
    input.sizes.push_back(size);
  }
  RETURN_IF_ERROR(CheckTensor(input, "input"));
  D3D12DeviceOptions options;
  const std::string choice = absl::GetFlag(FLAGS_device);
  if (choice == "hardware") options.choice = AdapterChoice::kHardware;
  if (choice == "software") options.choice = AdapterChoice::kSoftware;
  ASSIGN_OR_RETURN(std::unique_ptr<Device> device, CreateD3D12Device(options));
  return Bench(*device, std::move(input)).Run();
}

}  // namespace
}  // namespace opmill

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures operators against the device's own limits.");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = opmill::Main();
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
