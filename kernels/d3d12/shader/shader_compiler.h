// Compiles flattened HLSL to bytecode. Implemented by devices and by tests.
#ifndef OPMILL_KERNELS_D3D12_SHADER_SHADER_COMPILER_H_
#define OPMILL_KERNELS_D3D12_SHADER_SHADER_COMPILER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/plan/plan.h"

namespace opmill {

// Thread-safe.
class ShaderCompiler {
 public:
  virtual ~ShaderCompiler() = default;

  // `source` must not contain includes; `name` is used in messages. Errors contain the compiler's
  // own message.
  virtual absl::StatusOr<std::string> Compile(absl::string_view source, absl::string_view name,
                                              absl::string_view entry,
                                              absl::Span<const ShaderMacro> macros) = 0;

  // Name, version and options: everything besides the source that affects the bytecode.
  virtual std::string identity() const = 0;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_SHADER_SHADER_COMPILER_H_
