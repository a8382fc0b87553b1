# Bytes instead of string literals: MSVC limits a literal to 16 KB.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(OPMILL_EMBED_SHADERS_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

  function(opmill_embed_shaders target)
    set(root "${CMAKE_SOURCE_DIR}/shaders")
    file(GLOB_RECURSE files CONFIGURE_DEPENDS "${root}/*.hlsl" "${root}/*.hlsli" "${root}/*.h")
    set(output "${CMAKE_CURRENT_BINARY_DIR}/embedded_shaders.cc")
    # The list of files is part of the command, so that it also runs when files are added or removed.
    list(TRANSFORM files REPLACE "^${root}/" "" OUTPUT_VARIABLE paths)
    list(JOIN paths "," paths)
    add_custom_command(
      OUTPUT "${output}"
      COMMAND "${CMAKE_COMMAND}" "-DROOT=${root}" "-DPATHS=${paths}" "-DOUTPUT=${output}"
              -P "${OPMILL_EMBED_SHADERS_SCRIPT}"
      DEPENDS ${files} "${OPMILL_EMBED_SHADERS_SCRIPT}"
      COMMENT "Embedding shaders"
      VERBATIM)
    target_sources(${target} PRIVATE "${output}")
  endfunction()
  return()
endif()

string(REPLACE "," ";" paths "${PATHS}")
string(REPEAT "[0-9a-f]" 32 row)
set(arrays "")
set(table "")
set(index 0)
foreach(path IN LISTS paths)
  file(READ "${ROOT}/${path}" bytes HEX)
  string(REGEX REPLACE "(${row})" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "// ${path}\nconst unsigned char kFile${index}[] = {\n${bytes}0};\n\n")
  string(APPEND table "    {\"${path}\", Text(kFile${index})},\n")
  math(EXPR index "${index} + 1")
endforeach()

file(WRITE "${OUTPUT}" "// Written by cmake/embed_shaders.cmake.
#include \"kernels/d3d12/shader/embedded_shaders.h\"

#include <cstddef>

namespace opmill {
namespace {

${arrays}// The final zero, which makes an empty file valid, is not part of the text.
template <size_t kSize>
absl::string_view Text(const unsigned char (&bytes)[kSize]) {
  return absl::string_view(reinterpret_cast<const char*>(bytes), kSize - 1);
}

}  // namespace

absl::Span<const EmbeddedShaderFile> EmbeddedShaders() {
  static const EmbeddedShaderFile kFiles[] = {
${table}  };
  return kFiles;
}

std::optional<absl::string_view> EmbeddedShader(absl::string_view path) {
  for (const EmbeddedShaderFile& file : EmbeddedShaders()) {
    if (file.path == path) return file.text;
  }
  return std::nullopt;
}

}  // namespace opmill
")
