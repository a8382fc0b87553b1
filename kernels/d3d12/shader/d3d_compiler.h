// The system's HLSL compiler: D3DCompile of d3dcompiler_47.dll or of vkd3d.
#ifndef OPMILL_KERNELS_D3D12_SHADER_D3D_COMPILER_H_
#define OPMILL_KERNELS_D3D12_SHADER_D3D_COMPILER_H_

#include <string>

#include "kernels/d3d12/shader/shader_compiler.h"

namespace opmill {

class D3DShaderCompiler : public ShaderCompiler {
 public:
  absl::StatusOr<std::string> Compile(absl::string_view source, absl::string_view name,
                                      absl::string_view entry,
                                      absl::Span<const ShaderMacro> macros) override;
  std::string identity() const override;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_SHADER_D3D_COMPILER_H_
