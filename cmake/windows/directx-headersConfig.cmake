# Debian's headers of Direct3D 12, as the package that vcpkg calls the same.
add_library(Microsoft::DirectX-Headers INTERFACE IMPORTED)
get_filename_component(root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set_target_properties(Microsoft::DirectX-Headers PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "${root}/include")
