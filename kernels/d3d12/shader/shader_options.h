// The compiler options of every shader, in the engine and in tests that compile shaders without it.
#ifndef OPMILL_KERNELS_D3D12_SHADER_SHADER_OPTIONS_H_
#define OPMILL_KERNELS_D3D12_SHADER_SHADER_OPTIONS_H_

namespace opmill {

inline constexpr char kShaderTarget[] = "cs_5_1";
// D3DCOMPILE_IEEE_STRICTNESS: infinities and NaN are honored, and sums are not reordered.
inline constexpr unsigned kShaderFlags = 1u << 13;

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_SHADER_SHADER_OPTIONS_H_
