#include "kernels/d3d12/shader/d3d_compiler.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/d3d12/adapter/adapters.h"
#include "kernels/d3d12/platform.h"
#include "kernels/d3d12/shader/shader_options.h"

namespace opmill {
namespace {

absl::string_view Text(ID3DBlob* blob) {
  if (blob == nullptr) return {};
  absl::string_view text(static_cast<const char*>(blob->GetBufferPointer()), blob->GetBufferSize());
  return absl::StripTrailingAsciiWhitespace(text.substr(0, text.find('\0')));
}

}  // namespace

absl::StatusOr<std::string> D3DShaderCompiler::Compile(absl::string_view source,
                                                       absl::string_view name,
                                                       absl::string_view entry,
                                                       absl::Span<const ShaderMacro> macros) {
  std::vector<std::string> values;
  values.reserve(macros.size());
  for (const ShaderMacro& macro : macros) values.push_back(absl::StrCat(macro.value));
  std::vector<D3D_SHADER_MACRO> defines;
  for (size_t i = 0; i < macros.size(); ++i) {
    defines.push_back({macros[i].name.c_str(), values[i].c_str()});
  }
  defines.push_back({nullptr, nullptr});

  ComPtr<ID3DBlob> code;
  ComPtr<ID3DBlob> messages;
  const HRESULT result =
      D3DCompile(source.data(), source.size(), std::string(name).c_str(), defines.data(), nullptr,
                 std::string(entry).c_str(), kShaderTarget, kShaderFlags, 0, code.GetAddressOf(),
                 messages.GetAddressOf());
  if (FAILED(result)) {
    return absl::InternalError(absl::StrCat("Shader ", name, " does not compile at entry ", entry,
                                            ": ", Text(messages.Get())));
  }
  return std::string(static_cast<const char*>(code->GetBufferPointer()), code->GetBufferSize());
}

std::string D3DShaderCompiler::identity() const {
  return absl::StrCat(ShaderCompilerName(), " ", kShaderTarget, " flags ", kShaderFlags);
}

}  // namespace opmill
