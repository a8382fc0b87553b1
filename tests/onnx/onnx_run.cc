// onnx_run [--threads=N] [--profile | --figures] MODEL [NAME=SIZES | NAME:=INTEGER]...: runs a
// model on the cpu device. For each line "RUNS FOLDER" of its input it runs the model so often, and
// prints the microseconds of the fastest run. If there is a folder, input i is read from its file
// in<i>, and output i of the last run written to out<i>; otherwise inputs are zeros. With --profile
// it prints instead how long each step takes on one thread, the slowest first, and on all threads
// of the device, which part of the former it would take on two, and how many tasks its phases have;
// with --figures how many steps there are, and what they move.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"
#include "kernels/cpu/device/cpu_device.h"
#include "kernels/cpu/device/cpu_plan.h"
#include "kernels/engine/program_report.h"
#include "kernels/onnx/lower_graph.h"
#include "kernels/onnx/read_model.h"
#include "kernels/onnx/specialize.h"
#include "kernels/operators/elementwise/fuse_chains.h"
#include "kernels/operators/program_steps.h"
#include "tests/onnx/model_arguments.h"
#include "tests/support/programs.h"

namespace opmill::onnx {
namespace {

struct Options {
  uint32_t threads = 0;
  bool profiles = false;
  bool prints_figures = false;
};

// Without chains.
absl::StatusOr<Program> LoweredProgramOf(const char* file, absl::Span<char* const> arguments) {
  ASSIGN_OR_RETURN(const Graph graph, ReadModelFile(file));
  ASSIGN_OR_RETURN(const InputBindings bindings, ParseBindings(graph, arguments));
  ASSIGN_OR_RETURN(const Graph specialized, Specialize(graph, bindings));
  ASSIGN_OR_RETURN(LoweredGraph lowered, LowerGraph(specialized));
  return std::move(lowered.program);
}

absl::StatusOr<Bindings> BuffersFor(Device& device, const Program& program) {
  std::vector<TensorBytes> inputs;
  for (const uint64_t bytes : RequiredBytes(program, ValueKind::kInput)) inputs.emplace_back(bytes);
  return BindProgram(device, program, inputs);
}

void ReadInputs(const std::string& folder, const Bindings& bindings) {
  for (size_t i = 0; i < bindings.inputs.size(); ++i) {
    const absl::Span<std::byte> bytes = bindings.inputs[i].bytes();
    std::ifstream file(absl::StrCat(folder, "/in", i), std::ios::binary);
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

void WriteOutputs(const std::string& folder, const Bindings& bindings) {
  for (size_t i = 0; i < bindings.outputs.size(); ++i) {
    const absl::Span<std::byte> bytes = bindings.outputs[i].bytes();
    std::ofstream file(absl::StrCat(folder, "/out", i), std::ios::binary);
    file.write(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

absl::Status Serve(Device& device, const Program& program) {
  const absl::Time begin = SteadyNow();
  ASSIGN_OR_RETURN(const auto compiled, device.Compile(program));
  std::cout << "compiled " << absl::ToInt64Microseconds(SteadyNow() - begin) << std::endl;
  ASSIGN_OR_RETURN(const Bindings bindings, BuffersFor(device, program));
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    uint64_t runs = 0;
    std::string folder;
    words >> runs >> folder;
    if (!folder.empty()) ReadInputs(folder, bindings);
    absl::Duration fastest = absl::InfiniteDuration();
    for (uint64_t run = 0; run < runs; ++run) {
      const absl::Time start = SteadyNow();
      RETURN_IF_ERROR(device.RunAndWait(compiled, bindings).status());
      fastest = std::min(fastest, SteadyNow() - start);
    }
    if (!folder.empty()) WriteOutputs(folder, bindings);
    std::cout << absl::ToDoubleMicroseconds(fastest) << std::endl;
  }
  return absl::OkStatus();
}

// The fastest times of a kernel's tasks, by phase.
using TaskTimes = std::vector<std::vector<absl::Duration>>;

// How long they take on so many threads, each of which takes the next task when it is free.
absl::Duration TimeOn(size_t threads, const TaskTimes& times) {
  absl::Duration sum;
  for (const std::vector<absl::Duration>& tasks : times) {
    std::vector<absl::Duration> busy(threads);
    for (const absl::Duration task : tasks) *std::min_element(busy.begin(), busy.end()) += task;
    sum += *std::max_element(busy.begin(), busy.end());
  }
  return sum;
}

// The fastest of some runs of each kernel.
absl::Status Profile(Device& device, const Program& program) {
  constexpr int kRuns = 10;
  const CpuPlan plan = MakeCpuPlan(program);
  ASSIGN_OR_RETURN(Bindings bindings, BuffersFor(device, program));
  ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> arena,
                   device.Allocate(std::max<uint64_t>(plan.arena_bytes, 1), Residency::kDevice));
  std::vector<TaskTimes> fastest(plan.nodes.size());
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    for (const uint64_t tasks : plan.nodes[n].work->phases()) {
      fastest[n].emplace_back(tasks, absl::InfiniteDuration());
    }
  }
  for (int run = 0; run < kRuns; ++run) {
    for (size_t n = 0; n < plan.nodes.size(); ++n) {
      const CpuProgram& work = *plan.nodes[n].work;
      const RunBuffers buffers = BuffersOf(plan, plan.nodes[n], bindings, arena->bytes().data());
      for (size_t phase = 0; phase < work.phases().size(); ++phase) {
        for (uint64_t task = 0; task < work.phases()[phase]; ++task) {
          const absl::Time start = SteadyNow();
          work.Run(phase, task, buffers);
          fastest[n][phase][task] = std::min(fastest[n][phase][task], SteadyNow() - start);
        }
      }
    }
  }
  std::vector<absl::Duration> shared(plan.nodes.size(), absl::InfiniteDuration());
  ASSIGN_OR_RETURN(const auto compiled, device.Compile(program));
  bindings.profile = std::make_shared<RunProfile>();
  for (int run = 0; run < kRuns; ++run) {
    RETURN_IF_ERROR(device.RunAndWait(compiled, bindings).status());
    for (size_t n = 0; n < shared.size(); ++n) {
      shared[n] = std::min(shared[n], bindings.profile->times[n]);
    }
  }
  std::vector<std::pair<absl::Duration, size_t>> times;
  absl::Duration on_two;
  for (size_t n = 0; n < fastest.size(); ++n) {
    times.emplace_back(TimeOn(1, fastest[n]), n);
    on_two += TimeOn(2, fastest[n]);
  }
  std::sort(times.begin(), times.end(), [](const auto& a, const auto& b) { return b < a; });
  absl::Duration total;
  for (const auto& [time, n] : times) total += time;
  std::cout << absl::StreamFormat(
      "%10.1f us, at best %.2f of it on two threads, %d kernels, %d phases, arena of %d KiB\n",
      absl::ToDoubleMicroseconds(total), absl::FDivDuration(on_two, total), plan.nodes.size(),
      plan.phases.size(), plan.arena_bytes >> 10);
  const ProgramReport report = ReportOf(program, plan);
  for (const auto& [time, n] : times) {
    const ProgramStep& step = report.steps[n];
    std::cout << absl::StreamFormat(
        "%10.1f %5.1f%% %10.1f %4d %.2f [%s] %s\n", absl::ToDoubleMicroseconds(time),
        100 * absl::FDivDuration(time, total), absl::ToDoubleMicroseconds(shared[n]), n,
        absl::FDivDuration(TimeOn(2, fastest[n]), std::max(time, absl::Nanoseconds(1))),
        absl::StrJoin(step.phases, "+"), step.text);
  }
  return absl::OkStatus();
}

// For each way of computing the program how many steps it has and what they move: each operator on
// its own, with chains, and as the device joins them. Then the arena and its lower bound.
absl::Status PrintFigures(Device& device, const Program& lowered) {
  const Program fused = FuseChains(lowered);
  ASSIGN_OR_RETURN(const auto compiled, device.Compile(fused));
  const ProgramReport report = compiled->Report();
  for (const std::vector<ProgramStep>& steps : {StepsOf(lowered), StepsOf(fused), report.steps}) {
    std::cout << steps.size() << " " << BytesMoved(steps) << " ";
  }
  std::cout << report.arena_bytes << " " << report.live_bytes << "\n";
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  Options options;
  int at = 1;
  for (; at < argc && absl::StartsWith(argv[at], "--"); ++at) {
    const absl::string_view flag = argv[at];
    if (flag == "--profile") {
      options.profiles = true;
    } else if (flag == "--figures") {
      options.prints_figures = true;
    } else if (!absl::StartsWith(flag, "--threads=") ||
               !absl::SimpleAtoi(flag.substr(10), &options.threads)) {
      return absl::InvalidArgumentError(absl::StrCat(flag, " is no flag."));
    }
  }
  if (at == argc) return absl::InvalidArgumentError("MODEL is missing.");
  ASSIGN_OR_RETURN(const Program lowered,
                   LoweredProgramOf(argv[at], absl::MakeConstSpan(argv + at + 1, argv + argc)));
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = options.threads});
  if (options.prints_figures) return PrintFigures(*device, lowered);
  const Program program = FuseChains(lowered);
  return options.profiles ? Profile(*device, program) : Serve(*device, program);
}

}  // namespace
}  // namespace opmill::onnx

int main(int argc, char** argv) {
  const absl::Status status = opmill::onnx::Run(argc, argv);
  if (status.ok()) return 0;
  std::cerr << status.message() << "\n";
  return 1;
}
