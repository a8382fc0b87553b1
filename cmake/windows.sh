# Sourced by dev, for its verb windows: builds the programs for Windows with mingw-w64 and tests them
# under Wine.
# shellcheck shell=bash disable=SC2154  # what dev sets

readonly windows=$PWD/build/windows
readonly windows_packages=(
  g++-mingw-w64-x86-64-posix libz-mingw-w64-dev googletest libgtest-dev  # of what links them
  patch perl python3 unicode-data                                        # of what it is made with
)
readonly wine=/usr/lib/wine/wine64 wineserver=/usr/lib/wine/wineserver  # where Debian has them
readonly wine_packages=(wine64 xvfb)
readonly webgpu_version=0.6.2  # the npm package that carries Microsoft's d3dcompiler_47.dll
readonly compiler_sha256=289767b49dc8525bce262ea06fee4ef9fced2e131a55b25654ce871c1f0498b2

# What a Windows Server has by itself, and the DLL that stands beside the programs.
readonly windows_dlls=" advapi32 bcrypt crypt32 d3d12 d3dcompiler_47 dbghelp dxgi gdi32 iphlpapi kernel32 \
mswsock msvcrt ntdll ole32 shell32 user32 ws2_32 "

# windows_deps [engine|all]: sets windows_deps to the folder of them.
windows_deps() {
  setup
  install "${windows_packages[@]}"
  windows_deps=$(OPMILL_JOBS=$jobs cmake/windows/deps.sh "${1:-all}")
  echo "Libraries for Windows: $windows_deps"
}

# windows_build [engine] [TARGET...]: all, or the kernels and their tests alone, in a folder of their own.
windows_build() {
  local scope=all tree=$windows
  if [[ ${1-} == engine ]]; then
    scope=engine tree=$windows/engine
    shift
  fi
  windows_deps "$scope"
  mkdir -p "$tree"
  local log=$tree/configure.log options=(-DOPMILL_WINDOWS_DEPS="$windows_deps") program
  [[ $scope == all ]] || options+=(-DOPMILL_ENGINE_ONLY=ON)
  # cmake remembers where it found a library.
  grep -qsxF "OPMILL_WINDOWS_DEPS:UNINITIALIZED=$windows_deps" "$tree/CMakeCache.txt" ||
    options+=(--fresh)
  configure windows-cross -B "$tree" "${options[@]}" >"$log" 2>&1 ||
    { cat "$log" >&2 && fail "cmake did not configure windows-cross."; }
  cmake --build "$tree" --parallel "$jobs" ${1+--target "$@"}
  check_moves "$tree/kernels/libopmill_cpu.a" "$windows_deps/lib/libhwy_contrib.a"
  [[ $scope == all ]] || return 0
  for program in "$windows"/server/opmill-server.exe "$windows"/client/opmill.exe; do
    [[ ! -e $program ]] || check_imports "$program"
  done
}

# check_moves LIBRARY...: no move of more than 16 bytes wants its memory aligned; toolchain.cmake says why.
# Tests would not find one: under Wine stacks happen to be aligned.
check_moves() {
  local library count
  for library; do
    [[ -e $library ]] || continue
    count=$(x86_64-w64-mingw32-objdump -d --no-show-raw-insn "$library" |
      grep -E '\svmov(ap[sd]|dqa[0-9]*) .*[yz]mm' | grep -c '(' || true)
    ((count == 0)) || fail "${library##*/} has $count aligned moves of vectors, which the stack may not be."
  done
}

# check_imports PROGRAM: checks that it needs only DLLs of Windows and d3dcompiler_47.dll.
check_imports() {
  local dll dlls
  dlls=$(x86_64-w64-mingw32-objdump -p "$1" | sed -n 's/^\tDLL Name: //p')
  [[ -n $dlls ]] || fail "${1##*/} has no table of imports."
  echo "${1##*/}: $(stat -c %s "$1") bytes, imports ${dlls//$'\n'/ }"
  for dll in ${dlls,,}; do
    [[ $windows_dlls == *" ${dll%.dll} "* ]] ||
      fail "${1##*/} needs $dll, which Windows does not bring."
  done
}

# Microsoft's HLSL compiler; Wine's own does not support compute shaders.
windows_compiler() {
  local dll=$windows/redist/d3dcompiler_47.dll work
  if [[ ! -e $dll ]]; then
    install_for npm nodejs npm
    mkdir -p "${dll%/*}"
    work=$(mktemp -d "$windows/npm.XXXXXX")
    (cd "$work" && npm pack --silent "webgpu@$webgpu_version" >/dev/null) ||
      fail "npm cannot fetch webgpu $webgpu_version; the tests under Wine need an npm registry."
    tar -xzf "$work"/webgpu-*.tgz -C "$work" package/dist/win32-x64/d3dcompiler_47.dll
    mv "$work/package/dist/win32-x64/d3dcompiler_47.dll" "$dll.new"
    rm -r "$work"
    echo "$compiler_sha256  $dll.new" | sha256sum --check --quiet ||
      fail "d3dcompiler_47.dll of webgpu $webgpu_version is another than was tested."
    mv "$dll.new" "$dll"
  fi
}

# await_start NAME PROCESS FILE LOG: waits until the process has written the file.
await_start() {
  local deadline=$((SECONDS + 120))
  until [[ -s $3 ]]; do
    if ! kill -0 "$2" 2>/dev/null || ((SECONDS > deadline)); then
      fail "$1 does not start: $(tail -n 20 "$4")"
    fi
    sleep 0.1
  done
}

# Starts a display, which Wine's Direct3D 12 needs, and a separate Windows prefix. Sets the environment
# for programs under Wine.
wine_begin() {
  install "${wine_packages[@]}"
  windows_compiler
  test_environment
  export WINEPREFIX=$windows/wine WINEDEBUG=${WINEDEBUG--all} WINE_D3D_CONFIG=renderer=vulkan
  export WINEDLLOVERRIDES="d3dcompiler_47=n;mscoree,mshtml=;winemenubuilder.exe="
  export LC_ALL=C.UTF-8  # of it Wine takes the code of arguments and of names of files
  export XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-$windows/runtime}
  mkdir -p "$XDG_RUNTIME_DIR"
  chmod 700 "$XDG_RUNTIME_DIR"

  local display=$windows/display
  rm -f "$display"
  Xvfb -displayfd 3 -screen 0 640x480x24 -nolisten tcp 3>"$display" 2>"$windows/xvfb.log" &
  xvfb=$!
  trap wine_end EXIT
  await_start Xvfb "$xvfb" "$display" "$windows/xvfb.log"
  DISPLAY=:$(<"$display")
  export DISPLAY
  # Wine's services start with the first program, would keep its stdout open, and end with the last
  # program. Therefore the first program stays: it waits for input that never comes. Starting the
  # services takes 3 to 13 s. wineboot would start them twice, each knowing only its own services.
  # Nothing else starts before this program is up: of two concurrent starts, each creates a directory
  # for its server's socket, and one may use the wrong one.
  local up=$windows/wine_up log=$windows/wine.log
  rm -f "$up"
  exec {wine_stays}> >(WINEDEBUG=fixme-all exec "$wine" cmd /k "echo up>build\\windows\\wine_up" >"$log" 2>&1)
  await_start Wine $! "$up" "$log"
  # The same for the desktop, which the first program that needs it would start with its own stderr.
  "$wine" explorer /desktop </dev/null >/dev/null 2>&1 &
  cp "$windows/redist/d3dcompiler_47.dll" "$WINEPREFIX/drive_c/windows/system32/"
}

# windows_test [engine] [CTEST ARGUMENTS]: runs the unit tests under Wine, all or only the kernels';
# then the Windows programs with clients and servers of this system, which start them through wrapper
# scripts.
windows_test() {
  local scope=all tree=$windows name failed=() began=$SECONDS
  if [[ ${1-} == engine ]]; then
    scope=engine tree=$windows/engine
    shift
    windows_build engine
  else
    windows_build
    build release opmill client_test stream_test
    test_clients
  fi
  # The engine would compile for minutes in one process; this compiles in several processes, once.
  microsoft_bytecode "$windows/shaders"
  wine_begin
  "$wine" "$tree/tests/fxc/kernel_list.exe" cache "$windows/shaders" "$windows/bytecode" \
    "$windows/shaders/wine_cache"
  step() {
    local started=$SECONDS
    echo "== $*"
    "$@" || failed+=("$*")
    echo "== $((SECONDS - started)) s"
  }
  step ctest --test-dir "$tree" --output-on-failure --no-tests=error --parallel "$jobs" \
    --timeout 300 --label-exclude "big|conformance" "$@"
  # Without its optimizer the driver takes a third off the time.
  step env GALLIVM_PERF=nopt "$wine" "$tree/tests/conformance/conformance_test.exe" --share 3 \
    --shader_cache "$windows/shaders/wine_cache" --gtest_brief=1
  step "$wine" "$tree/tests/conformance/conformance_test.exe" --device Cpu --share 12 --gtest_brief=1
  [[ $scope == engine ]] || windows_services
  ((${#failed[@]} == 0)) || fail "under Wine failed: $(printf '%s; ' "${failed[@]}")"
  echo "Under Wine all is right, in $((SECONDS - began)) s."
}

windows_services() {
  export OPMILL_WINE=$wine
  export OPMILL_WINDOWS_SERVER=$windows/bin/server OPMILL_WINDOWS_CLI=$windows/bin/opmill
  mkdir -p "$windows/bin"
  program bin/opmill-server "$PWD/tests/windows/in_console.sh" "$wine" \
    "$windows/tests/windows/console_host.exe" "$windows/server/opmill-server.exe"
  program bin/server "$wine" "$windows/server/opmill-server.exe"
  program bin/opmill "$wine" "$windows/client/opmill.exe"
  # Microsoft's compiler takes 0.4 s per kernel, and the suites start about sixty servers.
  export OPMILL_TEST_SHADER_CACHE=Z:$windows/shader_cache
  export OPMILL_SERVER_BINARY=$windows/bin/opmill-server OPMILL_CLI_BINARY=$PWD/build/release/client/opmill
  # The server does not see the segments of Linux; shared_memory_windows_test has those of Windows.
  step build/release/tests/client/client_test --gtest_filter=-ClientTest.ExecutesInSharedMemory
  # Debian's gRPC does not limit connections, and on Windows nothing else does: listener.h.
  step build/release/tests/end_to_end/stream_test \
    --gtest_filter=-StreamLimits.AConnectionBeyondTheLimitIsClosedAndMayRetry
  for name in windows_programs access drain execute execute_stream limits metrics other_clients rest; do
    step env PYTHONPATH=tests/windows "$venv/bin/python" tests/end_to_end/suite.py "test_$name"
  done
}

# program FILE COMMAND...: creates a script under build/windows that runs the command.
program() {
  printf '#!/bin/sh\nexec %s "$@"\n' "${*:2}" >"$windows/$1"
  chmod +x "$windows/$1"
}

wine_end() {
  trap - EXIT
  [[ ! ${wine_stays-} ]] || exec {wine_stays}>&-
  "$wineserver" --kill 2>/dev/null || true
  kill "$xvfb" 2>/dev/null || true
  wait "$xvfb" || true
}

windows_verb() {
  local verb=${1-}
  shift || true
  case $verb in
    deps) windows_deps "$@" ;;
    build) windows_build "$@" ;;
    test) windows_test "$@" ;;
    shaders) windows_shaders "$@" ;;
    exec) wine_begin && "$wine" "$@" ;;
    *) fail "windows knows deps, build, test, shaders and exec, not '$verb'." ;;
  esac
}
