# opmill_warnings: what every target of this project compiles with.
add_library(opmill_warnings INTERFACE)
if(MSVC)
  target_compile_options(opmill_warnings INTERFACE /W4 /utf-8 $<$<BOOL:${OPMILL_WARNINGS_AS_ERRORS}>:/WX>)
else()
  target_compile_options(opmill_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
    $<$<BOOL:${OPMILL_WARNINGS_AS_ERRORS}>:-Werror>)
endif()
if(OPMILL_SANITIZER)
  add_compile_options(-fsanitize=${OPMILL_SANITIZER} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${OPMILL_SANITIZER})
endif()
