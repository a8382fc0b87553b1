// How every shader is compiled, here and by the tests that compile them apart from the engine.
#ifndef OPMILL_KERNELS_D3D12_SHADER_SHADER_OPTIONS_H_
#define OPMILL_KERNELS_D3D12_SHADER_SHADER_OPTIONS_H_

namespace opmill {

inline constexpr char kShaderTarget[] = "cs_5_1";
// D3DCOMPILE_IEEE_STRICTNESS: infinities and NaN mean what they say, and sums keep their order.
inline constexpr unsigned kShaderFlags = 1u << 13;

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_SHADER_SHADER_OPTIONS_H_
