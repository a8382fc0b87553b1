# opmill_direct3d: Direct3D 12 headers and what implements them on this system.
#   Windows: d3d12.dll, dxgi.dll, d3dcompiler_47.dll
#   Linux:   vkd3d 2.1 or newer: the system's when pkg-config finds it, else the static libraries
#            that `./dev setup` unpacks under OPMILL_DEPS_DIR
set(OPMILL_DEPS_DIR "${CMAKE_SOURCE_DIR}/build/deps" CACHE PATH "Where ./dev setup unpacks packages")

add_library(opmill_direct3d INTERFACE)
if(WIN32)
  find_package(directx-headers CONFIG REQUIRED)
  target_link_libraries(opmill_direct3d INTERFACE Microsoft::DirectX-Headers d3d12 dxgi d3dcompiler)
else()
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(DIRECTX_HEADERS REQUIRED IMPORTED_TARGET DirectX-Headers)
  target_include_directories(opmill_direct3d SYSTEM INTERFACE /usr/include/wsl/stubs)
  target_link_libraries(opmill_direct3d INTERFACE PkgConfig::DIRECTX_HEADERS)
  pkg_check_modules(VKD3D IMPORTED_TARGET libvkd3d-utils>=1.17)
  if(VKD3D_FOUND)
    target_link_libraries(opmill_direct3d INTERFACE PkgConfig::VKD3D vkd3d vkd3d-shader)
  else()
    set(deps_lib "${OPMILL_DEPS_DIR}/root/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
    if(NOT EXISTS "${deps_lib}/libvkd3d-utils.a")
      message(FATAL_ERROR "No vkd3d 2.1 or newer: run ./dev setup, or set OPMILL_DEPS_DIR.")
    endif()
    target_link_libraries(opmill_direct3d INTERFACE "${deps_lib}/libvkd3d-utils.a"
      "${deps_lib}/libvkd3d.a" "${deps_lib}/libvkd3d-shader.a")
  endif()
  target_link_libraries(opmill_direct3d INTERFACE ${CMAKE_DL_LIBS} m)
endif()
