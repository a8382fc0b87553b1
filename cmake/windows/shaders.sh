# Sourced by dev, for `windows shaders`: Microsoft's HLSL compiler, under Wine, over the kernels that
# plans ask for, and its bytecode through the conformance test on this machine's device.
# shellcheck shell=bash disable=SC2154  # what dev sets

readonly shader_wine=/usr/lib/wine/wine64  # where Debian has it
readonly webgpu_version=0.6.2              # the npm package that carries d3dcompiler_47.dll
readonly compiler_sha256=289767b49dc8525bce262ea06fee4ef9fced2e131a55b25654ce871c1f0498b2

# fetch_compiler FILE: Microsoft's d3dcompiler_47.dll. Wine's own takes no compute shaders.
fetch_compiler() {
  [[ ! -e $1 ]] || return 0
  install_for npm nodejs npm
  mkdir -p "${1%/*}"
  local work
  work=$(mktemp -d "$1.XXXXXX")
  (cd "$work" && npm pack --silent "webgpu@$webgpu_version" >/dev/null) ||
    fail "npm cannot fetch webgpu $webgpu_version, which carries d3dcompiler_47.dll."
  tar -xzf "$work"/webgpu-*.tgz -C "$work" package/dist/win32-x64/d3dcompiler_47.dll
  echo "$compiler_sha256  $work/package/dist/win32-x64/d3dcompiler_47.dll" |
    sha256sum --check --quiet ||
    fail "d3dcompiler_47.dll of webgpu $webgpu_version is another than was tested."
  mv "$work/package/dist/win32-x64/d3dcompiler_47.dll" "$1"
  rm -r "$work"
}

# compile_shaders FOLDER: what kernel_list wrote there, in one process a core, since a cold one costs
# a second.
compile_shaders() {
  local folder=$1 share running=() status=0
  x86_64-w64-mingw32-g++-posix -std=c++20 -O2 -Wall -Wextra -Werror -I. -static -s \
    tests/fxc/fxc.cc -o "$folder/fxc.exe" -ld3dcompiler_47 || return
  cp "$PWD/build/windows/redist/d3dcompiler_47.dll" "$folder" || return
  (
    export WINEPREFIX=$PWD/build/windows/wine WINEDEBUG=-all
    export WINEDLLOVERRIDES="d3dcompiler_47=n;mscoree,mshtml=;winemenubuilder.exe="
    [[ -e $WINEPREFIX/system.reg ]] || "$shader_wine" wineboot --init 2>/dev/null
    cd "$folder" || exit
    for ((share = 0; share < jobs; ++share)); do
      "$shader_wine" fxc.exe . "$share" "$jobs" >"fxc.$share.log" 2>&1 &
      running+=($!)
    done
    for share in "${!running[@]}"; do
      wait "${running[share]}" || status=1
      cat "fxc.$share.log"
    done
    exit $status
  )
}

# windows_shaders [--all]: a sample that covers every pair of macros' values, or every kernel.
windows_shaders() {
  local folder=$PWD/build/windows/shaders all=() began=$SECONDS
  case ${1-} in
    --all) all=(all) ;;
    '') ;;
    *) fail "windows shaders takes --all alone, not '$1'." ;;
  esac
  install g++-mingw-w64-x86-64-posix wine64
  build release kernel_list conformance_test
  fetch_compiler "$PWD/build/windows/redist/d3dcompiler_47.dll"
  rm -rf "$folder"
  mkdir -p "$folder"
  build/release/tests/fxc/kernel_list write "$folder" "${all[@]}"
  local compiling=$SECONDS
  compile_shaders "$folder" || fail "Microsoft's compiler refuses what stands above."
  echo "Microsoft's compiler: $((SECONDS - compiling)) s in $jobs processes"
  build/release/tests/fxc/kernel_list cache "$folder" "$folder/cache"
  device_environment
  build/release/tests/conformance/conformance_test --shader_cache "$folder/cache" --gtest_brief=1
  echo "Every shader is right by Microsoft's compiler, in $((SECONDS - began)) s."
}
