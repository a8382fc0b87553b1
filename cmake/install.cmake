# cmake --install: the two programs, and the client library for
#
#   find_package(opmill CONFIG REQUIRED)
#   target_link_libraries(app PRIVATE opmill::client)     #include "opmill/client/client.h"
#
# Headers of this tree include each other from its root. The installed ones do so as opmill/..., so that
# a project may have its own client/client.h.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(root "${CMAKE_INSTALL_INCLUDEDIR}/opmill")
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/opmill")

set_target_properties(opmill_client PROPERTIES EXPORT_NAME client)
set_target_properties(opmill_base PROPERTIES EXPORT_NAME base)
set_target_properties(opmill_proto PROPERTIES EXPORT_NAME proto)
target_include_directories(opmill_proto PUBLIC "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")

install(TARGETS opmill opmill-server COMPONENT programs)
install(TARGETS opmill_base opmill_client opmill_proto EXPORT opmill)
foreach(header array_text client error execution execution_stream mapped_file names npy npy_writer)
  install(FILES "client/${header}.h" DESTINATION "${root}/client")
endforeach()
install(FILES kernels/base/process_memory.h proto/payload.h DESTINATION "${root}/proto")
install(DIRECTORY "${PROJECT_BINARY_DIR}/proto/opmill/" DESTINATION "${root}"
  FILES_MATCHING PATTERN "*.pb.h")
install(DIRECTORY "${PROJECT_BINARY_DIR}/proto/google" DESTINATION "${root}"
  FILES_MATCHING PATTERN "*.pb.h")
install(CODE "set(root \"${root}\")")
install(CODE [[
  file(GLOB_RECURSE headers "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${root}/*.h")
  foreach(header IN LISTS headers)
    file(READ "${header}" text)
    string(REGEX REPLACE "(#include \")(client|google/rpc|proto)/" "\\1opmill/\\2/" text "${text}")
    file(WRITE "${header}" "${text}")
  endforeach()
]])
install(DIRECTORY proto/opmill proto/google DESTINATION "${CMAKE_INSTALL_DATADIR}/opmill/proto"
  FILES_MATCHING PATTERN "*.proto")
install(EXPORT opmill NAMESPACE opmill:: FILE opmillTargets.cmake DESTINATION "${package}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/opmillConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES cmake/opmillConfig.cmake "${PROJECT_BINARY_DIR}/opmillConfigVersion.cmake"
  DESTINATION "${package}")
