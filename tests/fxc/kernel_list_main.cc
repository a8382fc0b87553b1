// Connects the engine with a shader compiler that runs elsewhere.
//
//   kernel_list write FOLDER [all]    kernels.txt, one line per kernel, and their sources without
//                                     includes: those of the conformance table's cover and others
//                                     until every pair of macro values is covered, or all kernels
//   kernel_list cache FOLDER KEPT CACHE
//                                     stores the bytecode in KEPT that FOLDER/compiled.* name as
//                                     a shader cache of this machine's engine, which then
//                                     compiles nothing
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "kernels/base/errors.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/d3d12/shader/d3d_compiler.h"
#include "kernels/d3d12/shader/embedded_shaders.h"
#include "kernels/d3d12/shader/shader_library.h"
#include "kernels/operators/operator_plan.h"
#include "tests/conformance/case_cover.h"
#include "tests/fxc/kernel_list.h"

namespace opmill {
namespace {

namespace fs = std::filesystem;

absl::Status Write(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file.fail()) return absl::UnknownError(absl::StrCat(path.string(), " cannot be written."));
  return absl::OkStatus();
}

// The kernels of `conformance_test --shader_cache`.
std::vector<KernelPermutation> ConformanceKernels() {
  const PlanOptions own = PlanOptionsFor(SizeOf(DeviceKind::kSoftware, 0, 0));
  const CaseCover cover(SystematicSets("Software", own));
  return {cover.kernels().begin(), cover.kernels().end()};
}

absl::Status WriteList(const fs::path& folder, bool all) {
  const auto began = std::chrono::steady_clock::now();
  const KernelList list = ListKernels();
  std::map<std::string, KernelPermutation> kernels;
  for (const KernelPermutation& kernel : ConformanceKernels()) {
    kernels.try_emplace(ToLine(kernel), kernel);
  }
  const size_t of_conformance = kernels.size();
  for (const KernelPermutation& kernel :
       all ? list.kernels : CoverPairs(list.kernels, ConformanceKernels())) {
    kernels.try_emplace(ToLine(kernel), kernel);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;

  ShaderSources sources;
  for (const EmbeddedFile& file : EmbeddedShaders()) {
    sources.emplace(std::string(file.path), std::string(file.text));
  }
  std::string lines;
  std::map<std::string, size_t> counts;
  std::set<std::string> written;
  for (const auto& [line, kernel] : kernels) {
    absl::StrAppend(&lines, line, "\n");
    ++counts[kernel.shader];
    const std::string path = absl::StrCat(SourceName(kernel), ".hlsl");
    if (!written.insert(path).second) continue;
    ASSIGN_OR_RETURN(const std::string flat,
                     FlattenShader(sources, absl::StrCat(kernel.shader, ".hlsl")));
    RETURN_IF_ERROR(Write(folder / path, WithGenerated(flat, kernel)));
  }
  RETURN_IF_ERROR(Write(folder / "kernels.txt", lines));
  for (const auto& [shader, count] : counts) {
    std::cout << absl::StrFormat("%6d  %s.hlsl\n", count, shader);
  }
  std::cout << absl::StrFormat(
      "%d kernels: %d of the conformance table, and %d more of the %d that %d plans ask for (%.1f "
      "s)\n",
      kernels.size(), of_conformance, kernels.size() - of_conformance, list.kernels.size(),
      list.plans, seconds.count());
  return absl::OkStatus();
}

// Returns the other compiler's bytecode, with the identity of the engine's own compiler.
class CompiledElsewhere : public ShaderCompiler {
 public:
  CompiledElsewhere(const fs::path& folder, fs::path kept) : kept_(std::move(kept)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.path().stem() != "compiled") continue;
      std::ifstream list(entry.path());
      std::string file, line;
      while (list >> file && std::getline(list >> std::ws, line)) files_.emplace(line, file);
    }
  }

  absl::StatusOr<std::string> Compile(absl::string_view /*source*/, absl::string_view name,
                                      absl::string_view entry,
                                      absl::Span<const ShaderMacro> macros) override {
    const std::string line = ToLine({std::string(absl::StripSuffix(name, ".hlsl")),
                                     std::string(entry),
                                     {macros.begin(), macros.end()}});
    const auto name_of_file = files_.find(line);
    if (name_of_file == files_.end()) {
      return absl::NotFoundError(absl::StrCat("No list has ", line));
    }
    const fs::path path = kept_ / name_of_file->second;
    std::ifstream file(path, std::ios::binary);
    std::string bytecode(std::istreambuf_iterator<char>(file), {});
    if (!absl::StartsWith(bytecode, "DXBC")) {
      return absl::NotFoundError(absl::StrCat(path.string(), " holds no bytecode of ", line));
    }
    return bytecode;
  }

  std::string identity() const override { return D3DShaderCompiler().identity(); }

 private:
  const fs::path kept_;
  absl::flat_hash_map<std::string, std::string> files_;  // by kernel line
};

absl::Status FillCache(const fs::path& folder, const fs::path& kept, const std::string& cache) {
  CompiledElsewhere compiler(folder, kept);
  const auto library = ShaderLibrary::Create({.cache_directory = cache}, compiler);
  const std::vector<KernelPermutation> kernels = ConformanceKernels();
  for (const KernelPermutation& kernel : kernels) RETURN_IF_ERROR(library->Get(kernel).status());
  if (library->counters().disk.failed_writes > 0) {
    return absl::UnknownError(absl::StrCat(cache, " cannot be written."));
  }
  std::cout << absl::StrFormat("%d kernels in %s\n", kernels.size(), cache);
  return absl::OkStatus();
}

absl::Status Run(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "write") return WriteList(words[1], false);
  if (words.size() == 3 && words[0] == "write" && words[2] == "all") {
    return WriteList(words[1], true);
  }
  if (words.size() == 4 && words[0] == "cache") return FillCache(words[1], words[2], words[3]);
  return absl::InvalidArgumentError(
      "usage: kernel_list write FOLDER [all] | cache FOLDER KEPT CACHE");
}

}  // namespace
}  // namespace opmill

int main(int argc, char** argv) {
  const absl::Status status = opmill::Run({argv + 1, argv + argc});
  if (!status.ok()) std::cerr << "kernel_list: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
