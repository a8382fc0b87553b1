// Measures how close operators come to the limit of the device. With flags: prints a table for the
// operators of one tensor. With --commands: controlled by bench.py.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "kernels/base/errors.h"
#if OPMILL_CPU_DEVICE
#include "kernels/cpu/device/cpu_device.h"
#endif
#include "kernels/d3d12/d3d12_device.h"
#include "tests/bench/kernel_rows.h"
#include "tests/bench/tool.h"

ABSL_FLAG(std::string, sizes, "8192,8192", "sizes of the input");
ABSL_FLAG(std::string, type, "FLOAT32", "its data type");
ABSL_FLAG(std::string, only, "", "run only rows whose name contains this");
ABSL_FLAG(int, repetitions, 7, "interleaved runs of each row");
ABSL_FLAG(std::string, device, "auto", "auto, hardware, software or cpu");
ABSL_FLAG(std::string, k, "10", "values of k for top_k");
ABSL_FLAG(bool, check, true, "compare a sample of every row's outputs with the reference");
ABSL_FLAG(bool, timestamps, true,
          "measure the device's own time; without, submissions are as light as the server's");
ABSL_FLAG(uint32_t, groups, 0, "plan for a device that so many groups fill; 0: for the real one");
ABSL_FLAG(uint32_t, threads, 0, "plan with so many lanes in a group; 0: as usual");
ABSL_FLAG(bool, commands, false, "read commands from standard input");

namespace opmill {
namespace {

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

struct TableRow {
  std::string name;
  size_t number = 0;
  size_t limit = 0;  // the read-only kernel, or the copy if it writes as much as it reads
  std::vector<double> executed = {};
  std::vector<double> device = {};
  std::vector<double> taken = {};   // TimeOf
  std::vector<double> shares = {};  // relative to the limit, run just before
};

// One of each kind over every axis of one tensor.
class Table {
 public:
  explicit Table(KernelRows& rows) : rows_(rows) {}

  absl::Status Run() {
    ASSIGN_OR_RETURN(const size_t read_only, rows_.AddReadOnly());
    ASSIGN_OR_RETURN(const size_t copy, rows_.AddCopy());
    table_.push_back({.name = "read only", .number = read_only, .limit = read_only});
    table_.push_back({.name = "copy", .number = copy, .limit = copy});
    RETURN_IF_ERROR(AddOperators());
    for (int i = 0; i < absl::GetFlag(FLAGS_repetitions); ++i) {
      for (TableRow& row : table_) RETURN_IF_ERROR(Measure(row));
    }
    Print();
    return absl::OkStatus();
  }

 private:
  absl::Status AddOperators() {
    std::vector<std::vector<uint32_t>> patterns;
    std::vector<uint32_t> all;
    for (uint32_t axis = 0; axis < rows_.input().sizes.size(); ++axis) {
      patterns.push_back({axis});
      all.push_back(axis);
    }
    if (all.size() > 1) patterns.push_back(all);
    ASSIGN_OR_RETURN(const std::vector<uint32_t> ks, ParseNumbers(absl::GetFlag(FLAGS_k)));
    for (const std::vector<uint32_t>& axes : patterns) {
      for (const char* function : {"SUM", "MAX", "L2", "AVERAGE", "LOG_SUM_EXP"}) {
        RETURN_IF_ERROR(Add(absl::StrCat("reduce ", function), "reduce", function, axes, 0));
      }
      RETURN_IF_ERROR(Add("argmax", "argmax", "", axes, 0));
      RETURN_IF_ERROR(Add("hardmax", "hardmax", "", axes, 0));
      RETURN_IF_ERROR(Add("softmax", "softmax", "", axes, 0));
      if (axes.size() > 1) continue;
      for (const uint32_t k : ks) {
        RETURN_IF_ERROR(Add(absl::StrCat("top_k k=", k), "top_k", "", axes, k));
      }
    }
    return absl::OkStatus();
  }

  // Skipped if the operator does not support the type.
  absl::Status Add(const std::string& what, const std::string& name, const std::string& function,
                   const std::vector<uint32_t>& axes, uint32_t k) {
    TableRow row = {.name = absl::StrCat(what, " over axes ", absl::StrJoin(axes, ","))};
    if (!absl::StrContains(row.name, absl::GetFlag(FLAGS_only))) return absl::OkStatus();
    const auto desc = ParseOperator(rows_.input(), name, function, axes, k);
    if (!desc.ok()) return absl::OkStatus();
    row.limit = table_[name == "hardmax" || name == "softmax" ? 1 : 0].number;
    ASSIGN_OR_RETURN(row.number, rows_.Add(*desc));
    // normalization_test checks softmax.
    if (absl::GetFlag(FLAGS_check) && name != "softmax") RETURN_IF_ERROR(rows_.Check(row.number));
    table_.push_back(std::move(row));
    return absl::OkStatus();
  }

  absl::Status Measure(TableRow& row) {
    ASSIGN_OR_RETURN(const RunStatistics limit, rows_.Run(row.limit));
    ASSIGN_OR_RETURN(const RunStatistics run, rows_.Run(row.number));
    row.executed.push_back(absl::ToDoubleSeconds(run.executed));
    row.device.push_back(absl::ToDoubleSeconds(run.device));
    row.taken.push_back(absl::ToDoubleSeconds(TimeOf(run)));
    row.shares.push_back(absl::FDivDuration(TimeOf(limit), TimeOf(run)));
    return absl::OkStatus();
  }

  void Print() const {
    std::cout << "input:  " << ToString(rows_.input()) << ", " << rows_.bytes() << " bytes\n"
              << absl::StrFormat("%-36s %10s %19s %10s %8s %7s %13s\n", "", "median ms",
                                 "10%..90% ms", "device ms", "GB/s", "share", "10%..90%");
    for (const TableRow& row : table_) {
      const double median = Quantile(row.executed, 0.5);
      std::cout << absl::StrFormat(
          "%-36s %10.2f %9.2f..%8.2f %10.3f %8.2f %7.2f %6.2f..%5.2f\n", row.name, median * 1e3,
          Quantile(row.executed, 0.1) * 1e3, Quantile(row.executed, 0.9) * 1e3,
          Quantile(row.device, 0.5) * 1e3,
          static_cast<double>(rows_.bytes()) / Quantile(row.taken, 0.5) / 1e9,
          Quantile(row.shares, 0.5), Quantile(row.shares, 0.1), Quantile(row.shares, 0.9));
    }
    std::cout << "share: of the read-only kernel's speed, run just before; of the copy's for "
                 "hardmax\n";
  }

  KernelRows& rows_;
  std::vector<TableRow> table_;
};

std::string KindName(DeviceKind kind) {
  if (kind == DeviceKind::kCpu) return "cpu";
  return kind == DeviceKind::kHardware ? "hardware" : "software";
}

// device | input type= sizes= [file=] | row operator= [function=] [axes=] [k=] | run row= |
// check row= | submit row= times=
absl::StatusOr<Json> Handle(Device& device, KernelRows& rows, const Command& command) {
  ASSIGN_OR_RETURN(const uint64_t row, command.Number("row"));
  if (command.verb() == "device") {
    return Json()
        .Add("name", device.info().name)
        .Add("driver", device.info().driver)
        .Add("kind", KindName(device.info().kind));
  }
  if (command.verb() == "input") {
    ASSIGN_OR_RETURN(TensorDesc input, ParseTensor(command.Text("type"), command.Text("sizes")));
    RETURN_IF_ERROR(rows.SetInput(std::move(input), command.Text("file")));
    return Json().Add("bytes", static_cast<double>(rows.bytes()));
  }
  if (command.verb() == "row") {
    const std::string name = command.Text("operator");
    if (name == "read") {
      ASSIGN_OR_RETURN(const size_t number, rows.AddReadOnly());
      return Json().Add("row", static_cast<double>(number));
    }
    if (name == "empty") {
      ASSIGN_OR_RETURN(const size_t number, rows.AddEmpty());
      return Json().Add("row", static_cast<double>(number));
    }
    if (name == "copy") {
      ASSIGN_OR_RETURN(const size_t number, rows.AddCopy());
      return Json().Add("row", static_cast<double>(number));
    }
    ASSIGN_OR_RETURN(const std::vector<uint32_t> axes, command.Numbers("axes"));
    ASSIGN_OR_RETURN(const uint64_t k, command.Number("k"));
    ASSIGN_OR_RETURN(const OperatorDesc desc,
                     ParseOperator(rows.input(), name, command.Text("function"), axes,
                                   static_cast<uint32_t>(k)));
    ASSIGN_OR_RETURN(const size_t number, rows.Add(desc));
    return Json().Add("row", static_cast<double>(number));
  }
  if (command.verb() == "run") {
    const absl::Time begun = absl::Now();
    ASSIGN_OR_RETURN(const RunStatistics run, rows.Run(row));
    return Json()
        .Add("wall_s", absl::ToDoubleSeconds(absl::Now() - begun))
        .Add("executed_s", absl::ToDoubleSeconds(run.executed))
        .Add("device_s", absl::ToDoubleSeconds(run.device));
  }
  if (command.verb() == "check") {
    RETURN_IF_ERROR(rows.Check(row));
    return Json();
  }
  if (command.verb() == "submit") {
    ASSIGN_OR_RETURN(const uint64_t times, command.Number("times"));
    std::vector<double> seconds;
    for (uint64_t i = 0; i < times; ++i) {
      const absl::Time begun = absl::Now();
      RETURN_IF_ERROR(rows.Run(row).status());
      seconds.push_back(absl::ToDoubleSeconds(absl::Now() - begun));
    }
    if (seconds.empty()) return absl::InvalidArgumentError("times is 0.");
    return Json().Add("p50_s", Quantile(seconds, 0.5)).Add("p99_s", Quantile(seconds, 0.99));
  }
  return absl::NotFoundError(absl::StrCat("There is no command ", command.verb(), "."));
}

absl::StatusOr<std::unique_ptr<Device>> OpenDevice() {
  D3D12DeviceOptions options = {.measure_device_time = absl::GetFlag(FLAGS_timestamps)};
  const std::string choice = absl::GetFlag(FLAGS_device);
  if (choice == "hardware") options.choice = AdapterChoice::kHardware;
  if (choice == "software") options.choice = AdapterChoice::kSoftware;
#if OPMILL_CPU_DEVICE
  if (choice == "cpu") return CreateCpuDevice();
#endif
  return CreateD3D12Device(options);
}

absl::Status Main() {
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, OpenDevice());
  PlanOptions options = PlanOptionsForTest(*device);
  if (const uint32_t groups = absl::GetFlag(FLAGS_groups); groups > 0) {
    options.parallel_groups = groups;
  }
  if (const uint32_t threads = absl::GetFlag(FLAGS_threads); threads > 0) options.threads = threads;
  KernelRows rows(*device, options);
  if (absl::GetFlag(FLAGS_commands)) {
    ServeCommands([&](const Command& command) { return Handle(*device, rows, command); });
    return absl::OkStatus();
  }
  if (absl::GetFlag(FLAGS_repetitions) < 1) return absl::InvalidArgumentError("--repetitions");
  ASSIGN_OR_RETURN(TensorDesc input,
                   ParseTensor(absl::GetFlag(FLAGS_type), absl::GetFlag(FLAGS_sizes)));
  RETURN_IF_ERROR(rows.SetInput(std::move(input), ""));
  std::cout << "device: " << device->info().name << " (" << device->info().driver << ")\n";
  return Table(rows).Run();
}

}  // namespace
}  // namespace opmill

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures operators against the device's own limits.");
  absl::ParseCommandLine(argc, argv);
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // like the server
  const absl::Status status = opmill::Main();
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
