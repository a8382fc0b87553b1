# opmill_warnings: what every target of this project compiles with.
add_library(opmill_warnings INTERFACE)
if(MSVC)
  target_compile_options(opmill_warnings INTERFACE /W4 /utf-8 $<$<BOOL:${OPMILL_WARNINGS_AS_ERRORS}>:/WX>)
  target_compile_definitions(opmill_warnings INTERFACE NOMINMAX)  # windows.h makes macros of std::min's name
else()
  # Designated initializers intentionally leave other members at their defaults.
  target_compile_options(opmill_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
    -Wno-missing-field-initializers
    $<$<BOOL:${OPMILL_WARNINGS_AS_ERRORS}>:-Werror>)
endif()
if(OPMILL_SANITIZER)
  # vptr checks the C++ type of objects; Direct3D's objects, written in C, have none.
  add_compile_options(-fsanitize=${OPMILL_SANITIZER} -fno-sanitize=vptr -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${OPMILL_SANITIZER})
  if(OPMILL_SANITIZER STREQUAL thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-Wno-tsan)  # abseil's flags have fences, which GCC cannot follow
  endif()
endif()
