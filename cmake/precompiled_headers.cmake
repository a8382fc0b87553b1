# Two ways to compile everything in less time. Sources still include what they use, and have no names in
# common: ./dev lint reads each of them alone.
#
# opmill_precompile(target headers): the sources of the target find the headers of a set below parsed already.
# opmill_join(target): its sources are compiled eight at a time, as one.
#
# Not with ccache: gcc's precompiled headers differ from build to build, so nothing would be found again, and of
# eight sources one has always changed.
set(default OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT WIN32 AND NOT CMAKE_CXX_COMPILER_LAUNCHER MATCHES ccache)
  set(default ON)
endif()
option(OPMILL_PRECOMPILE_HEADERS "Parse common headers of libraries once" ${default})
option(OPMILL_JOIN_SOURCES "Compile the sources of libraries and tests eight at a time" ${default})

function(opmill_join target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${OPMILL_JOIN_SOURCES} UNITY_BUILD_BATCH_SIZE 8)
  if(OPMILL_JOIN_SOURCES)  # a class of a source may have members whose types are the source's own
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    if(OPMILL_SANITIZER)  # between its checks, gcc sees paths that do not exist
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
  endif()
endfunction()

function(opmill_precompile target headers)
  if(OPMILL_PRECOMPILE_HEADERS)
    target_precompile_headers(${target} REUSE_FROM opmill_${headers}_headers)
    # gcc 12 does not know any more that these headers are the system's, and warns about <string>.
    target_compile_options(${target} PRIVATE -Wno-stringop-overread -Wno-array-bounds)
  endif()
endfunction()

# opmill_precompiled_headers(name headers... [OPTIONS option...] [LIBRARIES library...])
function(opmill_precompiled_headers name)
  cmake_parse_arguments(PARSE_ARGV 1 set "" "" "OPTIONS;LIBRARIES")
  if(NOT OPMILL_PRECOMPILE_HEADERS)
    return()
  endif()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}_headers.cc")
  file(CONFIGURE OUTPUT "${source}" CONTENT "")
  add_library(opmill_${name}_headers OBJECT EXCLUDE_FROM_ALL "${source}")
  target_compile_options(opmill_${name}_headers PRIVATE ${set_OPTIONS})
  target_link_libraries(opmill_${name}_headers PRIVATE ${set_LIBRARIES})
  target_precompile_headers(opmill_${name}_headers PRIVATE ${set_UNPARSED_ARGUMENTS})
endfunction()

# gcc refuses headers that were compiled with other macros, of which -pthread defines one. It collects garbage
# from 128 MiB on, which takes a tenth of its time; most sources need 500.
if(OPMILL_PRECOMPILE_HEADERS)
  add_compile_options(-pthread --param=ggc-min-heapsize=600000)
endif()

set(opmill_common_headers <algorithm> <cstdint> <functional> <memory> <optional> <string> <utility> <vector>
  <absl/container/flat_hash_map.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
  <absl/synchronization/mutex.h> <absl/time/clock.h>)
opmill_precompiled_headers(engine ${opmill_common_headers} LIBRARIES absl::flat_hash_map absl::statusor)
if(NOT OPMILL_ENGINE_ONLY)
  opmill_precompiled_headers(grpc ${opmill_common_headers} <grpcpp/grpcpp.h> LIBRARIES gRPC::grpc++)
endif()
