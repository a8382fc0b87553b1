// The steps of ./dev gpu-report, which report.py drives:
//
//   gpu_report plans UNITS [ROWS]       the hot plans for a GPU with so many compute units, or
//                                       those of the file ROWS: a line "plan MULTIPLICATIONS
//                                       INPUT_BYTES OUTPUT_BYTES TITLE", then a line "PASS GROUPS
//                                       READ WRITTEN SCANS STEPS RESULTS COMPARISONS LEADERS
//                                       KERNEL" for each dispatch (bytes, and its LaneWork), or
//                                       "PASS fill BYTES"
//   gpu_report kernels all|UNITS        one line for each kernel of all plans, or of the hot ones
//   gpu_report compile FOLDER CACHE <LINES
//                                       compiles each kernel, prints a line
//                                       "KERNEL<tab>NAME=VALUE...", and writes its assembly to
//                                       FOLDER/NUMBER.s. CACHE keeps bytecode between calls.
#include <algorithm>
#include <bit>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/d3d12/shader/d3d_compiler.h"
#include "kernels/d3d12/shader/shader_library.h"
#include "shaders/reduction_constants.h"
#include "shaders/top_k_constants.h"
#include "tests/fxc/kernel_list.h"
#include "tests/gpu_report/gpu_compiler.h"
#include "tests/gpu_report/hot_plans.h"

namespace opmill {
namespace {

// The kernels with a generated text that plans can use, by their lines.
const std::map<std::string, KernelPermutation>& GeneratedKernels() {
  static const auto* const generated = [] {
    auto* const kernels = new std::map<std::string, KernelPermutation>;
    for (const KernelPermutation& kernel : ListKernels().kernels) {
      if (!kernel.text.empty()) kernels->emplace(ToLine(kernel), kernel);
    }
    for (const TitledPlan& titled : HotPlans(1)) {
      for (const KernelPermutation& kernel : titled.plan.kernels) {
        if (!kernel.text.empty()) kernels->emplace(ToLine(kernel), kernel);
      }
    }
    return kernels;
  }();
  return *generated;
}

// The opposite of ToLine.
KernelPermutation FromLine(const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  if (words.size() < 2) throw std::runtime_error("No kernel: " + line);
  if (absl::StrContains(words[0], '.')) {
    const auto found = GeneratedKernels().find(line);
    if (found == GeneratedKernels().end()) throw std::runtime_error("No kernel: " + line);
    return found->second;
  }
  KernelPermutation kernel = {.shader = words[0], .entry = words[1]};
  for (size_t i = 2; i < words.size(); ++i) {
    const std::pair<std::string, std::string> macro = absl::StrSplit(words[i], '=');
    kernel.macros.push_back({macro.first});
    if (!absl::SimpleAtoi(macro.second, &kernel.macros.back().value)) {
      throw std::runtime_error("No kernel: " + line);
    }
  }
  return kernel;
}

uint64_t Sum(const std::vector<uint64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
}

template <typename Views>
uint64_t BytesOf(const Views& views) {
  uint64_t bytes = 0;
  for (const BufferView& view : views) bytes += view.element_count * ViewElementBytes(view.format);
  return bytes;
}

// What a lane does beside the code outside of loops, and the loop that loads the most.
struct LaneWork {
  // Of top_k: vectors of keys that it counts or collects, or items that it moves.
  uint64_t scans = 0;
  uint64_t steps = 0;        // joins of parts; of top_k: pairs of candidates that a sort compares
  uint64_t results = 0;      // of top_k: candidates that it writes, if they are among the best
  uint64_t comparisons = 0;  // of top_k: four candidates, for a rank
  uint64_t leaders = 0;      // of top_k: 32 leaders, with a pivot
  uint64_t insertions = 0;   // of top_k: items that it may put among those that it keeps
};

uint32_t MacroOf(const KernelPermutation& kernel, const std::string& name) {
  for (const ShaderMacro& macro : kernel.macros) {
    if (macro.name == name) return macro.value;
  }
  throw std::runtime_error(absl::StrCat(ToLine(kernel), " has no ", name));
}

LaneWork SortWork(uint64_t bits, uint64_t count, uint64_t threads) {
  return {.steps = bits * (bits + 1) / 2 * CeilDiv(count / 2, threads)};
}

// Of random items: those that reach a floor are a third more than k, and two digits find a cut.
LaneWork WorkOf(const Dispatch& dispatch, const KernelPermutation& kernel) {
  const uint64_t threads = MacroOf(kernel, "THREADS");
  if (dispatch.constants.Holds<TopKSortConstants>()) {
    const auto sort = dispatch.constants.As<TopKSortConstants>();
    const uint64_t count = uint64_t{1} << (sort.row_bits + sort.item_bits);
    LaneWork work = SortWork(sort.item_bits, count, threads);
    work.scans = CeilDiv(2 * count, threads);
    return work;
  }
  if (dispatch.constants.Holds<ReductionConstants>()) {
    LaneWork work;
    uint64_t parts = uint64_t{1} << dispatch.constants.As<ReductionConstants>().lane_bits;
    for (; parts > 1; parts = CeilDiv(parts, uint64_t{8})) ++work.steps;
    return work;
  }
  if (kernel.entry != "SelectBest" && kernel.entry != "WalkChunks") return {};
  const auto select = dispatch.constants.As<TopKChunkConstants>();
  const uint64_t items = std::min(select.chunk_length, select.items.length);
  if (kernel.entry == "WalkChunks") return {.insertions = items};
  const bool has_floor = select.leaders > 0;
  const uint64_t count = std::min<uint64_t>(
      items, has_floor ? CeilDiv(uint64_t{4} * select.ranks.k, uint64_t{3}) : select.most);
  const bool is_wide = ElementBytes(static_cast<DataType>(MacroOf(kernel, "DATA_TYPE"))) == 8;
  const bool has_many = MacroOf(kernel, "MANY") != 0;
  LaneWork work;
  if (!has_many) {
    work.comparisons = CeilDiv(count * count, 4 * threads);
  } else if (is_wide) {
    const uint64_t bits = std::bit_width(count - 1);
    work = SortWork(bits, uint64_t{1} << bits, threads);
  }
  if (has_floor && !has_many) {
    work.scans =
        8 * count > threads ? 2 : 1;  // vectors that reach the floor, of any lane of a wave
  } else {
    work.scans = has_floor || items <= select.most ? TOP_K_LANE_VECTORS : 3 * TOP_K_LANE_VECTORS;
  }
  work.leaders = select.leaders / threads;
  work.results = CeilDiv(count, threads);
  return work;
}

void PrintPlans(const std::vector<TitledPlan>& plans) {
  for (const TitledPlan& titled : plans) {
    std::cout << "plan " << titled.multiplications << " " << Sum(titled.plan.input_bytes) << " "
              << Sum(titled.plan.output_bytes) << " " << titled.title << "\n";
    for (size_t pass = 0; pass < titled.plan.passes.size(); ++pass) {
      for (const Fill& fill : titled.plan.passes[pass].fills) {
        std::cout << pass + 1 << " fill " << fill.size_bytes << "\n";
      }
      for (const Dispatch& dispatch : titled.plan.passes[pass].dispatches) {
        const KernelPermutation& kernel = titled.plan.kernels[dispatch.kernel];
        const LaneWork work = WorkOf(dispatch, kernel);
        const uint64_t written = BytesOf(dispatch.writes);
        // The views of gathered elements reach across others.
        const bool gathers = dispatch.constants.Holds<TopKGatherConstants>();
        std::cout << pass + 1 << " " << uint64_t{dispatch.groups[0]} * dispatch.groups[1] << " "
                  << (gathers ? written : BytesOf(dispatch.reads)) << " " << written << " "
                  << work.scans << " " << work.steps << " " << work.results << " "
                  << work.comparisons << " " << work.leaders << " " << work.insertions << " "
                  << ToLine(kernel) << "\n";
      }
    }
  }
}

// All, if `units` is 0.
void PrintKernels(uint32_t units) {
  std::set<std::string> lines;
  if (units == 0) {
    for (const KernelPermutation& kernel : ListKernels().kernels) lines.insert(ToLine(kernel));
  } else {
    for (const TitledPlan& titled : HotPlans(units)) {
      for (const KernelPermutation& kernel : titled.plan.kernels) lines.insert(ToLine(kernel));
    }
  }
  for (const std::string& line : lines) std::cout << line << "\n";
}

void Compile(const std::string& folder, const std::string& cache) {
  D3DShaderCompiler compiler;
  const std::unique_ptr<ShaderLibrary> library =
      ShaderLibrary::Create({.cache_directory = cache}, compiler);
  const GpuCompiler gpu;
  std::cout << "gpu " << gpu.gpu_name() << "\n";
  size_t number = 0;
  for (std::string line; std::getline(std::cin, line); ++number) {
    const auto bytecode = library->Get(FromLine(line));
    if (!bytecode.ok()) throw std::runtime_error(std::string(bytecode.status().message()));
    const CompiledKernel compiled = gpu.Compile(ToSpirv(**bytecode));
    std::cout << line;
    for (const auto& [name, value] : compiled.statistics) std::cout << "\t" << name << "=" << value;
    std::cout << std::endl;
    std::ofstream(absl::StrCat(folder, "/", number, ".s")) << compiled.assembly;
  }
}

int Run(const std::vector<std::string>& words) {
  uint32_t units = 0;
  const bool has_units = words.size() >= 2 && absl::SimpleAtoi(words[1], &units);
  if (has_units && words[0] == "plans" && words.size() == 2) {
    PrintPlans(HotPlans(units));
  } else if (has_units && words[0] == "plans" && words.size() == 3) {
    std::ifstream rows(words[2]);
    PrintPlans(MeasuredPlans(units, rows));
  } else if (words.size() == 2 && words[0] == "kernels" && (has_units || words[1] == "all")) {
    PrintKernels(units);
  } else if (words.size() == 3 && words[0] == "compile") {
    Compile(words[1], words[2]);
  } else {
    std::cerr << "usage: gpu_report plans UNITS [ROWS] | kernels all|UNITS | compile FOLDER CACHE "
                 "<LINES\n";
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace opmill

int main(int argc, char** argv) {
  try {
    return opmill::Run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "gpu_report: " << error.what() << "\n";
    return 1;
  }
}
