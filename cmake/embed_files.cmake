# Bytes instead of string literals: MSVC limits a literal to 16 KB.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(OPMILL_EMBED_FILES_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

  # opmill_embed_files(target function header root pattern...)
  #
  # Defines `function`, which `header` declares, in the target: it returns the files below `root` whose names
  # match one of the patterns, as absl::Span<const EmbeddedFile>.
  function(opmill_embed_files target function header root)
    list(TRANSFORM ARGN PREPEND "${root}/" OUTPUT_VARIABLE patterns)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${patterns})
    set(output "${CMAKE_CURRENT_BINARY_DIR}/${function}.cc")
    # The list of files is part of the command, so that it also runs when files are added or removed.
    list(TRANSFORM files REPLACE "^${root}/" "" OUTPUT_VARIABLE paths)
    list(JOIN paths "," paths)
    add_custom_command(
      OUTPUT "${output}"
      COMMAND "${CMAKE_COMMAND}" "-DROOT=${root}" "-DPATHS=${paths}" "-DOUTPUT=${output}"
              "-DFUNCTION=${function}" "-DHEADER=${header}" -P "${OPMILL_EMBED_FILES_SCRIPT}"
      DEPENDS ${files} "${OPMILL_EMBED_FILES_SCRIPT}"
      COMMENT "Embedding the files of ${function}"
      VERBATIM)
    target_sources(${target} PRIVATE "${output}")
    set_source_files_properties("${output}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
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

file(WRITE "${OUTPUT}" "// Written by cmake/embed_files.cmake.
#include \"${HEADER}\"

#include <cstddef>

namespace opmill {
namespace {

${arrays}// The final zero, which makes an empty file valid, is not part of the text.
template <size_t kSize>
absl::string_view Text(const unsigned char (&bytes)[kSize]) {
  return absl::string_view(reinterpret_cast<const char*>(bytes), kSize - 1);
}

}  // namespace

absl::Span<const EmbeddedFile> ${FUNCTION}() {
  static const EmbeddedFile kFiles[] = {
${table}  };
  return kFiles;
}

}  // namespace opmill
")
