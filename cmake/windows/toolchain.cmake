# Windows programs built on Linux, by mingw-w64 with its own C++ library linked in. Looks for libraries
# in OPMILL_WINDOWS_DEPS, which cmake/windows/deps.sh fills, and for programs on this machine.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(triplet x86_64-w64-mingw32)
set(CMAKE_C_COMPILER ${triplet}-gcc-posix)
set(CMAKE_CXX_COMPILER ${triplet}-g++-posix)
set(CMAKE_RC_COMPILER ${triplet}-windres)

# big-obj: gRPC's objects have more than 65,536 sections. use-unaligned-vector-move: on Win64 gcc keeps
# vectors of 32 and 64 bytes on a stack that is aligned to 16, and moves them as if they were aligned (gcc
# bug 54412). Debian's gcc is patched; with this option any other works as well.
set(CMAKE_C_FLAGS_INIT "-D_WIN32_WINNT=0x0A00 -DWINVER=0x0A00")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -Wa,-mbig-obj,-muse-unaligned-vector-move")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -static-libgcc -static-libstdc++")

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES OPMILL_WINDOWS_DEPS)
set(CMAKE_FIND_ROOT_PATH "${OPMILL_WINDOWS_DEPS}" /usr/${triplet})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_PREFIX_PATH /)

# The static one; the import library beside it would be found first.
set(ZLIB_LIBRARY /usr/${triplet}/lib/libz.a CACHE FILEPATH "")
