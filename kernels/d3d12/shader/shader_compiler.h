// Turns flattened HLSL into bytecode. Implemented by devices; tests bring their own.
#ifndef OPMILL_KERNELS_D3D12_SHADER_SHADER_COMPILER_H_
#define OPMILL_KERNELS_D3D12_SHADER_SHADER_COMPILER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/plan/plan.h"

namespace opmill {

// Safe to use from many threads.
class ShaderCompiler {
 public:
  virtual ~ShaderCompiler() = default;

  // `source` includes nothing; `name` is for messages. The error carries the compiler's own text.
  virtual absl::StatusOr<std::string> Compile(absl::string_view source, absl::string_view name,
                                              absl::string_view entry,
                                              absl::Span<const ShaderMacro> macros) = 0;

  // Name, version and options: all that changes the bytecode of one source.
  virtual std::string identity() const = 0;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_SHADER_SHADER_COMPILER_H_
