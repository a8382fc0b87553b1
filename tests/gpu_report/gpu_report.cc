// The steps of ./dev gpu-report, which report.py drives:
//
//   gpu_report plans UNITS              the hot plans for a GPU with so many compute units: a line
//                                       "plan MULTIPLICATIONS INPUT_BYTES TITLE", then a line
//                                       "PASS GROUPS KERNEL" for each dispatch, or "PASS fill
//                                       BYTES"
//   gpu_report kernels all|UNITS        one line for each kernel of all plans, or of the hot ones
//   gpu_report compile FOLDER CACHE <LINES
//                                       compiles each kernel, prints a line
//                                       "KERNEL<tab>NAME=VALUE...", and writes its assembly to
//                                       FOLDER/NUMBER.s. CACHE keeps bytecode between calls.
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

void PrintPlans(uint32_t units) {
  for (const TitledPlan& titled : HotPlans(units)) {
    const std::vector<uint64_t>& inputs = titled.plan.input_bytes;
    std::cout << "plan " << titled.multiplications << " "
              << std::accumulate(inputs.begin(), inputs.end(), uint64_t{0}) << " " << titled.title
              << "\n";
    for (size_t pass = 0; pass < titled.plan.passes.size(); ++pass) {
      for (const Fill& fill : titled.plan.passes[pass].fills) {
        std::cout << pass + 1 << " fill " << fill.size_bytes << "\n";
      }
      for (const Dispatch& dispatch : titled.plan.passes[pass].dispatches) {
        std::cout << pass + 1 << " " << uint64_t{dispatch.groups[0]} * dispatch.groups[1] << " "
                  << ToLine(titled.plan.kernels[dispatch.kernel]) << "\n";
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
  const bool has_units = words.size() == 2 && absl::SimpleAtoi(words[1], &units);
  if (has_units && words[0] == "plans") {
    PrintPlans(units);
  } else if (words.size() == 2 && words[0] == "kernels" && (has_units || words[1] == "all")) {
    PrintKernels(units);
  } else if (words.size() == 3 && words[0] == "compile") {
    Compile(words[1], words[2]);
  } else {
    std::cerr
        << "usage: gpu_report plans UNITS | kernels all|UNITS | compile FOLDER CACHE <LINES\n";
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
