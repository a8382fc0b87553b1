# opmill_direct3d: Direct3D 12 headers and what implements them on this system.
#   Windows: d3d12.dll, dxgi.dll, d3dcompiler_47.dll
#   Linux:   vkd3d 2.1 or newer: the system's when pkg-config finds it, else the static libraries
#            that `./dev setup` unpacks under OPMILL_DEPS_DIR
set(OPMILL_DEPS_DIR "${CMAKE_SOURCE_DIR}/build/deps" CACHE PATH "Where ./dev setup unpacks packages")

add_library(opmill_direct3d INTERFACE)
if(WIN32)
  find_package(directx-headers CONFIG REQUIRED)
  target_link_libraries(opmill_direct3d INTERFACE Microsoft::DirectX-Headers d3d12 dxgi d3dcompiler)
  return()
endif()

find_package(PkgConfig REQUIRED)
pkg_check_modules(DIRECTX_HEADERS REQUIRED IMPORTED_TARGET DirectX-Headers)
find_library(DIRECTX_GUIDS DirectX-Guids REQUIRED)
target_include_directories(opmill_direct3d SYSTEM INTERFACE /usr/include/wsl/stubs)
target_link_libraries(opmill_direct3d INTERFACE PkgConfig::DIRECTX_HEADERS)

pkg_check_modules(VKD3D IMPORTED_TARGET libvkd3d-utils>=2.1 libvkd3d-shader>=2.1 libvkd3d>=2.1)
if(VKD3D_FOUND)
  target_link_libraries(opmill_direct3d INTERFACE PkgConfig::VKD3D)
else()
  target_include_directories(opmill_direct3d SYSTEM INTERFACE
    "${OPMILL_DEPS_DIR}/root/usr/include/vkd3d")
  foreach(file libvkd3d-utils.a libvkd3d.a libvkd3d-shader.a)
    find_library(OPMILL_${file} ${file} NO_DEFAULT_PATH PATHS "${OPMILL_DEPS_DIR}/root/usr/lib"
      PATH_SUFFIXES "${CMAKE_LIBRARY_ARCHITECTURE}")
    if(NOT OPMILL_${file})
      message(FATAL_ERROR "No vkd3d 2.1 or newer: ${file} is neither installed nor under "
        "${OPMILL_DEPS_DIR}. Run ./dev setup, or set OPMILL_DEPS_DIR.")
    endif()
    target_link_libraries(opmill_direct3d INTERFACE "${OPMILL_${file}}")
  endforeach()

  include(CheckFunctionExists)
  check_function_exists(__isoc23_strtol OPMILL_HAVE_ISOC23)
  if(NOT OPMILL_HAVE_ISOC23)
    add_library(opmill_glibc_compat STATIC "${CMAKE_SOURCE_DIR}/kernels/d3d12/glibc_compat.c")
    target_link_libraries(opmill_direct3d INTERFACE opmill_glibc_compat)
  endif()
endif()
target_link_libraries(opmill_direct3d INTERFACE "${DIRECTX_GUIDS}" ${CMAKE_DL_LIBS} m)

# vkd3d's objects are C: their tables of methods carry no C++ type for the sanitizer to look at.
if(OPMILL_SANITIZER MATCHES undefined)
  target_compile_options(opmill_direct3d INTERFACE -fno-sanitize=vptr)
endif()
