// Maps kernel permutations to bytecode: flattens the HLSL, reads the disk cache, and compiles what
// is missing there.
#ifndef OPMILL_KERNELS_D3D12_SHADER_SHADER_LIBRARY_H_
#define OPMILL_KERNELS_D3D12_SHADER_SHADER_LIBRARY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "kernels/d3d12/shader/bytecode_cache.h"
#include "kernels/d3d12/shader/shader_compiler.h"
#include "kernels/plan/plan.h"

namespace opmill {

using ShaderSources = std::map<std::string, std::string, std::less<>>;  // path -> text

struct ShaderLibraryOptions {
  std::string cache_directory;  // UTF-8; empty: no disk cache
  uint64_t max_cache_bytes = uint64_t{64} << 20;
  ShaderSources sources;  // if not empty, replaces the embedded sources
  std::function<void(const std::string& sentence)> on_cache_problem;  // see BytecodeCache
};

struct ShaderLibraryCounters {
  uint64_t compiled = 0;
  BytecodeCache::Counters disk;
};

// Returns one text without includes, except that of a kernel's generated text. Each `#include "x"`
// (x relative to the root of the sources, also in subfolders) is replaced by the file's text inside
// an include guard. #line directives preserve file and line for compiler messages. FXC honors them;
// vkd3d 2.1 does not, and counts the lines of the flat text without those of inactive branches.
absl::StatusOr<std::string> FlattenShader(const ShaderSources& sources, absl::string_view path);

// The flat shader with the kernel's text in its place.
std::string WithGenerated(absl::string_view flat, const KernelPermutation& kernel);
// The name of that source: the shader, and for a kernel with a text a digest of it:
// "element_wise.0123456789abcdef".
std::string SourceName(const KernelPermutation& kernel);

// Thread-safe. Does not keep bytecode; the pipeline cache keeps pipelines.
class ShaderLibrary {
 public:
  // `compiler` must outlive the library.
  static std::unique_ptr<ShaderLibrary> Create(ShaderLibraryOptions options,
                                               ShaderCompiler& compiler);

  absl::StatusOr<std::shared_ptr<const std::string>> Get(const KernelPermutation& kernel);

  // The kernels whose bytecode is on disk, most recently used first.
  std::vector<KernelPermutation> Remembered(size_t max_kernels);

  ShaderLibraryCounters counters() const;

 private:
  struct FlatShader {
    std::string text;
    std::string digest;  // Sha256 of the text
  };

  ShaderLibrary(ShaderLibraryOptions options, ShaderCompiler& compiler);
  absl::StatusOr<std::shared_ptr<const FlatShader>> Flat(const std::string& path);
  std::string KeyOf(const FlatShader& flat, const KernelPermutation& kernel) const;

  ShaderCompiler& compiler_;
  const std::string compiler_identity_;
  const ShaderSources sources_;
  BytecodeCache disk_;
  std::atomic<uint64_t> compiled_{0};
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<const FlatShader>> flat_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_SHADER_SHADER_LIBRARY_H_
