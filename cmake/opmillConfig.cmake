# find_package(opmill CONFIG): the library opmill::client and what it stands on.
include(CMakeFindDependencyMacro)
find_dependency(absl)
find_dependency(Protobuf)
find_dependency(gRPC CONFIG)
include("${CMAKE_CURRENT_LIST_DIR}/opmillTargets.cmake")
